-- Records of a session. A record's stream id is <revision>-<inc>; inc is 48 bits of the server's
-- replication id, which is random after each promotion and restart.
local PUBLISH_BYTES_MAX = 8192

local function current_inc()
  local id = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x%x%x%x%x%x%x%x%x%x%x%x)')
  return string.format('%.0f', tonumber(id, 16))
end

-- A session that was deleted left its last revision behind: no stream id is ever used again.
local function last_revision(session)
  return tonumber(redis.call('HGET', key('s', session), 'rev')
    or redis.call('HGET', root .. ':deleted', session) or '0')
end

-- Stores a record as an entry of a stream; returns its stream id.
local function store_record(stream, record)
  local stream_id = string.format('%d-%s', record.revision, record.inc)
  redis.call('XADD', stream, stream_id, 'b', record.branch, 'p', record.parent,
    'k', record.kind, 'h', record.hash, 't', record.now, 'd', record.data)
  return stream_id
end

-- A live message is "R" and the record, or "D" and only its id when the record is large. `heard`
-- is the content that subscribers get, where less of it is stored.
local function add_record(session, record, heard)
  local stream_id = store_record(key('log', session), record)
  local channel = key('ev', session)
  if redis.call('PUBSUB', 'NUMSUB', channel)[2] > 0 then
    local message = 'D' .. stream_id
    if #heard <= PUBLISH_BYTES_MAX then
      message = table.concat({ 'R' .. stream_id, record.branch, record.parent, record.kind,
        record.hash, string.format('%d', record.now), heard }, '\0')
    end
    redis.call('PUBLISH', channel, message)
  end
  return stream_id .. '.' .. record.hash
end

-- Provisional events are live only: "P", the revision that they come after, and the event.
local function publish_event(session, revision, data)
  redis.call('PUBLISH', key('ev', session), 'P' .. revision .. '\0' .. data)
end

-- When a record that lies in the journal's stream was appended; 0 if it does not.
local function time_of(session, record_id)
  local stream_id = string.match(record_id, '^[^.]*')
  local entry = redis.call('XRANGE', key('log', session), stream_id, stream_id)[1]
  return entry and tonumber(entry[2][10]) or 0
end

local function blob_key(session, digest)
  return key('blob', session .. '/' .. digest)
end

-- The first blob that n entries from ARGV[first] on name and the session does not have.
local function missing_blob(session, first, n)
  for at = first + 3, first + 4 * n - 1, 4 do
    for digest in string.gmatch(ARGV[at], '%x+') do
      if redis.call('EXISTS', blob_key(session, digest)) == 0 then return digest end
    end
  end
end

-- Appends n entries (kind, hash, data, blobs) that start at ARGV[first] to a branch. An entry
-- without a kind is a provisional event, to be heard at this place and not kept. Returns the new
-- head, and kind (without its version) -> id of the last record of that kind.
local function add_records(session, branch, head, first, n, now, heard_end)
  local inc, before = current_inc(), last_revision(session)
  local revision, ids = before, {}
  for at = first, first + 4 * (n - 1), 4 do
    local kind, data = ARGV[at], ARGV[at + 2]
    if kind == '' then
      publish_event(session, string.match(head, '^%d*'), data)
    else
      revision = revision + 1
      local plain_kind = string.match(kind, '^[^@]*')
      head = add_record(session, { revision = revision, inc = inc, branch = branch, parent = head, kind = kind,
        hash = ARGV[at + 1], data = data, now = now }, plain_kind == 'run_finished' and heard_end or data)
      ids[plain_kind] = head
      for digest in string.gmatch(ARGV[at + 3], '%x+') do
        redis.call('HINCRBY', blob_key(session, digest), 'refs', 1)
        redis.call('ZREM', root .. ':orphans', session .. '/' .. digest)
      end
    end
  end
  if revision > before then
    redis.call('HSET', key('heads', session), branch, head)
    redis.call('HSET', key('s', session), 'rev', revision)
  end
  return head, ids
end

-- Appends one record that a script writes itself, hashing it here; returns its record id. Its
-- parent is the head of the chain, unless it goes on from elsewhere.
local function add_own_record(session, branch, kind, data, now, base)
  local heads = key('heads', session)
  local parent = base or redis.call('HGET', heads, branch) or ''
  local revision = last_revision(session) + 1
  local parent_hash = string.match(parent, '%.(.*)$') or ''
  local hash = string.sub(redis.sha1hex(parent_hash .. '|' .. branch .. '|' .. kind .. '|' .. data), 1, 24)
  local id = add_record(session, { revision = revision, inc = current_inc(), branch = branch,
    parent = parent, kind = kind, hash = hash, data = data, now = now }, data)
  redis.call('HSET', heads, branch, id)
  redis.call('HSET', key('s', session), 'rev', revision)
  return id
end

-- The control chain holds what no worker writes: it moves no branch head under an active writer.
local function add_control_record(session, kind, data, now)
  return add_own_record(session, '@control', kind, data, now)
end

-- Where a run began says that it ends on its branch.
local function note_begin(run_id, ids)
  local begin = ids.run_started or ids.run_continued
  if begin then redis.call('HSET', key('run', run_id), 'begin', begin) end
end

-- The archive looks at a session then, unless it does so before. An archiver that has the session
-- says itself, when it gives it back, when that is to be looked at again.
local function look_at(session, at_ms)
  if redis.call('HEXISTS', key('s', session), 'archive_fence') == 0 then
    redis.call('ZADD', root .. ':archive', 'LT', at_ms, session)
  end
end

-- A checkpoint lets a checkout begin there, and what is older go to the archive. A compaction is one.
local function note_checkpoint(lane, session, ids, now)
  local checkpoint = ids.checkpoint or ids.compaction_applied
  if not checkpoint then return end
  redis.call('HSET', lane.name, 'checkpoint', string.match(checkpoint, '^%d+'))
  look_at(session, now)
end

-- Records of a session. A record's stream id is <revision>-<inc>; inc is 48 bits of the server's
-- replication id, which is random after each promotion and restart.
local PUBLISH_BYTES_MAX = 8192

local function current_inc()
  local id = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x%x%x%x%x%x%x%x%x%x%x%x)')
  return string.format('%.0f', tonumber(id, 16))
end

local function last_revision(session)
  return tonumber(redis.call('HGET', key('s', session), 'rev') or '0')
end

-- A live message is "R" and the record, or "D" and only its id when the record is large.
local function add_record(session, record)
  local stream_id = string.format('%d-%s', record.revision, record.inc)
  redis.call('XADD', key('log', session), stream_id, 'b', record.branch, 'p', record.parent,
    'k', record.kind, 'h', record.hash, 't', record.now, 'd', record.data)
  local message = 'D' .. stream_id
  if #record.data <= PUBLISH_BYTES_MAX then
    message = table.concat({ 'R' .. stream_id, record.branch, record.parent, record.kind,
      record.hash, string.format('%d', record.now), record.data }, '\0')
  end
  redis.call('PUBLISH', key('ev', session), message)
  return stream_id .. '.' .. record.hash
end

-- Provisional events are live only: "P", the revision that they come after, and the event.
local function publish_event(session, revision, data)
  redis.call('PUBLISH', key('ev', session), 'P' .. revision .. '\0' .. data)
end

-- Appends n entries (kind, hash, data) that start at ARGV[first] to a branch. An entry without a
-- kind is a provisional event, to be heard at this place and not kept. Returns the new head.
local function add_records(session, branch, head, first, n, now)
  local inc, before = current_inc(), last_revision(session)
  local revision = before
  for at = first, first + 3 * (n - 1), 3 do
    if ARGV[at] == '' then
      publish_event(session, string.match(head, '^%d*'), ARGV[at + 2])
    else
      revision = revision + 1
      head = add_record(session, { revision = revision, inc = inc, branch = branch, parent = head,
        kind = ARGV[at], hash = ARGV[at + 1], data = ARGV[at + 2], now = now })
    end
  end
  if revision > before then
    redis.call('HSET', key('heads', session), branch, head)
    redis.call('HSET', key('s', session), 'rev', revision)
  end
  return head
end

-- Appends one record to the session's control chain, hashing it here; returns its record id.
local function add_control_record(session, kind, data, now)
  local heads = key('heads', session)
  local parent = redis.call('HGET', heads, '@control') or ''
  local revision = last_revision(session) + 1
  local parent_hash = string.match(parent, '%.(.*)$') or ''
  local hash = string.sub(redis.sha1hex(parent_hash .. '|@control|' .. kind .. '|' .. data), 1, 24)
  local id = add_record(session, { revision = revision, inc = current_inc(), branch = '@control',
    parent = parent, kind = kind, hash = hash, data = data, now = now })
  redis.call('HSET', heads, '@control', id)
  redis.call('HSET', key('s', session), 'rev', revision)
  return id
end

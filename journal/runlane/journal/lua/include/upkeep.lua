-- What the stream of a session has to keep. Everything before that may lie in the archive alone.

local function branches_of(session)
  local names = { 'main' }
  for _, branch in ipairs(redis.call('HKEYS', key('heads', session))) do
    if branch ~= 'main' and branch ~= '@control' then names[#names + 1] = branch end
  end
  return names
end

-- Branch -> the revision from which on it has records of its own, where that is not the first.
local function first_own(session)
  local first, jumps = {}, redis.call('HGETALL', key('jumps', session))
  for i = 1, #jumps, 2 do
    local branch = cmsgpack.unpack(jumps[i + 1]).branch_id
    first[branch] = math.max(first[branch] or 1, tonumber(string.match(jumps[i], '^%d+')))
  end
  return first
end

-- When a record was written; 0 if the stream has dropped it.
local function written_ms(session, record_id)
  local revision = string.match(record_id, '^%d+')
  for _, entry in ipairs(redis.call('XRANGE', key('log', session), revision, revision, 'COUNT', 1)) do
    for i = 1, #entry[2], 2 do
      if entry[2][i] == 't' then return tonumber(entry[2][i + 1]) end
    end
  end
  return 0
end

-- The first revision that the stream has to keep: a lane that is active, or whose head is younger
-- than cold_ms, keeps its records from its last checkpoint on. Then when the first of those that
-- are only young is so no more, nil if there is none. Nil and a refusal if a lane is too new.
local function first_kept(session, now, cold_ms)
  local first, cold_at, own = last_revision(session) + 1, nil, nil
  for _, branch in ipairs(branches_of(session)) do
    local lane, refused = read_lane(session, branch)
    if refused then return nil, nil, refused end
    local head = redis.call('HGET', key('heads', session), branch)
    local due = head and written_ms(session, head) + cold_ms or 0
    if lane.active ~= '' or due > now then
      local from = redis.call('HGET', lane.name, 'checkpoint')
      if not from then
        own = own or first_own(session)
        from = own[branch] or 1
      end
      first = math.min(first, tonumber(from))
      if lane.active == '' then cold_at = math.min(cold_at or due, due) end
    end
  end
  return first, cold_at
end

-- Up to where the stream has dropped a session's records, up to where the archive has them all, and
-- the name of its last segment. Before the first one both are where the session's records begin.
local function archived_of(session)
  local s = redis.call('HMGET', key('s', session), 'trimmed', 'archived', 'segment')
  if s[1] then return tonumber(s[1]), tonumber(s[2]), s[3] end
  local entry = redis.call('XRANGE', key('log', session), '-', '+', 'COUNT', 1)[1]
  local before = entry and tonumber(string.match(entry[1], '^%d+')) - 1 or last_revision(session)
  return before, before, ''
end

-- Puts a session that no archiver has where it is due next: never, once its stream is empty.
local function schedule(session, first, cold_at, now, cold_ms)
  local archive = root .. ':archive'
  if redis.call('XLEN', key('log', session)) == 0 then return redis.call('ZREM', archive, session) end
  local due = math.min(cold_at or now + cold_ms, now + cold_ms)
  if first - 1 > archived_of(session) then due = now end
  redis.call('ZADD', archive, due, session)
end

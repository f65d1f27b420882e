--[[ archive_claim
Give a worker sessions of which records may go to the archive, each with a token of its own.

KEYS[1] root                partition; touches archive, s, heads, jumps, lane, log, w, deleted

ARGV[1] worker
ARGV[2] request_id          random; the same request again returns the same sessions
ARGV[3] lease_ms            how long they are this worker's
ARGV[4] cold_ms             how old the head of an idle lane is when it may go
ARGV[5] n                   at most this many, at least 1

Returns {sessions}
  sessions  {session, token, trimmed, archived, segment, upto} each: up to where the stream has
            dropped its records, the archive has them all, its last segment or "", and up to where
            they may go now

A session of which nothing may go is put off until something may; up to a hundred at once.
]]
--- @include base
--- @include journal
--- @include upkeep
local LOOK_AT_MAX = 100
local request_id, lease_ms, cold_ms = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local now, archive = now_ms(), root .. ':archive'
local worker_key = key('w', ARGV[1])
local claimed, names = {}, {}

local function describe(session, token, first)
  local trimmed, archived, segment = archived_of(session)
  claimed[#claimed + 1] = { session, token, trimmed, archived, segment, first - 1 }
end

local function take(session)
  local name = key('s', session)
  local first, cold_at, refused = first_kept(session, now, cold_ms)
  if refused then return redis.call('ZADD', archive, now + lease_ms, session) end
  if first - 1 <= archived_of(session) then
    redis.call('HDEL', name, 'archive_fence')
    return schedule(session, first, cold_at, now, cold_ms)
  end
  local token = redis.call('HINCRBY', name, 'archive_n', 1) .. ':' .. request_id
  redis.call('HSET', name, 'archive_fence', token)
  redis.call('ZADD', archive, now + lease_ms, session)
  names[#names + 1] = session
  describe(session, token, first)
end

local last = redis.call('HMGET', worker_key, 'archive_id', 'archive_sessions')
if last[1] == request_id then
  for session in string.gmatch(last[2], '%S+') do
    local token = redis.call('HGET', key('s', session), 'archive_fence') or ''
    local first = first_kept(session, now, cold_ms)
    if string.match(token, ':(.*)$') == request_id and first then describe(session, token, first) end
  end
  return { claimed }
end

for _, session in ipairs(redis.call('ZRANGEBYSCORE', archive, '-inf', now, 'LIMIT', 0, LOOK_AT_MAX)) do
  if #claimed >= tonumber(ARGV[5]) then break end
  local s = redis.call('HMGET', key('s', session), 'rev', 'state')
  if s[1] and s[2] ~= 'deleting' then
    take(session)
  else
    redis.call('ZREM', archive, session)
  end
end
redis.call('HSET', worker_key, 'archive_id', request_id, 'archive_sessions', table.concat(names, ' '))
redis.call('PEXPIRE', worker_key, 10 * lease_ms)
return { claimed }

--[[ delete_session
Begin to delete a session, or go on with it: it takes no new work, and its runs end.

KEYS[1] root                partition; touches s, heads, lane, run, inbox, next, log, q, wake, ctl,
                            archive, deletions, sessions, steer

ARGV[1] session
ARGV[2] deletion            what names this deletion, unless one has begun before
ARGV[3] reason              the workers of its runs are told
ARGV[4] result              encoded result of its runs that had not ended, not compressed
ARGV[5] keep_ms             how long the ended runs are known
ARGV[6] resume_ms           when somebody else goes on with it, if this caller does not
ARGV[7] n                   runs to end at once, at least 1
ARGV[8] unused_ms           only if no run has been asked for or has ended for that long; 0 always
ARGV[9] go_on               1 only to go on with that deletion, 0 to begin it

Returns {code, ...}
  OK              name of the deletion, 1 if runs may be left that have not ended, else 0
  IN_USE          branch of which a run has not ended, or "" if the session was used lately
  GONE            0: another caller has gone on with it to the end
  UNKNOWN_SESSION 0
  NEWER_SCHEMA    schema of a lane
]]
--- @include base
--- @include journal
--- @include queue
--- @include ending
--- @include hold
--- @include upkeep
local session, result, keep_ms, unused_ms = ARGV[1], ARGV[4], ARGV[5], tonumber(ARGV[8])
local name, now = key('s', session), now_ms()
local s = redis.call('HMGET', name, 'state', 'deletion', 'ended_ms')
if ARGV[9] == '1' and s[2] ~= ARGV[2] then return { 'GONE', 0 } end
if redis.call('EXISTS', name) == 0 then return { 'UNKNOWN_SESSION', 0 } end
local lanes = {}
for _, branch in ipairs(branches_of(session)) do
  local lane, refused = read_lane(session, branch)
  if refused then return refused end
  if unused_ms > 0 and s[1] ~= 'deleting' and lane.active ~= '' then return { 'IN_USE', branch } end
  lanes[branch] = lane
end
if unused_ms > 0 and s[1] ~= 'deleting' then
  local asked_ms = redis.call('ZSCORE', root .. ':sessions', session) or '0'
  if math.max(tonumber(asked_ms), tonumber(s[3] or '0')) > now - unused_ms then return { 'IN_USE', '' } end
end

local deletion = s[1] == 'deleting' and s[2] or ARGV[2]
redis.call('HSET', name, 'state', 'deleting', 'deletion', deletion)
redis.call('HDEL', name, 'archive_fence')
redis.call('PERSIST', name)
redis.call('ZREM', root .. ':archive', session)
redis.call('ZADD', root .. ':deletions', now + ARGV[6], session)

local left = tonumber(ARGV[7])

local function end_run(lane, run_id)
  local run = read_run(run_id)
  left = left - 1
  if not run or TERMINAL[run.state] then
    if lane.active == run_id then redis.call('HDEL', lane.name, 'active', 'fence') end
  elseif run.queue == HOLDS then
    end_hold(lane, run_id, run, 'cancelled', 'external_abort', now)
    redis.call('DEL', key('run', run_id))
  else
    if run.worker ~= '' then
      redis.call('PUBLISH', key('ctl', run.worker), table.concat({ '', run_id, lane.fence, ARGV[3] }, '\0'))
    end
    settle(lane, run_id, run, 'cancelled', 'external_abort', result, result, keep_ms, now)
  end
end

-- What waits ends first: nothing becomes active any more.
for branch, lane in pairs(lanes) do
  for _, kind in ipairs({ 'next', 'inbox' }) do
    local waiting = key(kind, session .. '/' .. branch)
    while left > 0 do
      local run_id = redis.call('LPOP', waiting)
      if not run_id then break end
      end_run(lane, run_id)
    end
  end
  if left > 0 and lane.active ~= '' then end_run(lane, lane.active) end
end
return { 'OK', deletion, left == 0 and 1 or 0 }

--[[ settle
End a run that no worker holds: dead letter, or crashes exhausted.

KEYS[1] root                partition; touches run, lane, heads, s, log, q, wake, inbox, next, dead, steer

ARGV[1] run_id
ARGV[2] status              failed | cancelled
ARGV[3] stop_reason
ARGV[4] result              encoded result, not compressed
ARGV[5] discard_result      the same for follow-ups that need this run to complete
ARGV[6] dead_reason         why it is listed as a dead letter, "" if it is not
ARGV[7] fence               of the worker that gives it up, "" if nobody holds it
ARGV[8] keep_ms             how long the ended runs are known

Returns {code, ...}
  OK           1
  ENDED        state: it had ended before, nothing was changed
  HELD         fence held now: only its holder may end it
  UNKNOWN_RUN  0
  NEWER_SCHEMA schema of the lane
]]
--- @include base
--- @include journal
--- @include queue
--- @include ending
local run_id = ARGV[1]
local run = read_run(run_id)
if not run then return { 'UNKNOWN_RUN', 0 } end
if TERMINAL[run.state] then return { 'ENDED', run.state } end
local lane, refused = read_lane(run.session, run.branch)
if refused then return refused end
if lane.active == run_id and lane.fence ~= ARGV[7] then return { 'HELD', lane.fence } end

local now = now_ms()
if ARGV[6] ~= '' then
  redis.call('HSET', key('dead', run_id), 'reason', ARGV[6], 'queue', run.queue, 'at_ms', now,
    'payload', redis.call('HGET', key('run', run_id), 'job') or '')
  redis.call('ZADD', root .. ':dead', now, run_id)
end
settle(lane, run_id, run, ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[8], now)
return { 'OK', 1 }

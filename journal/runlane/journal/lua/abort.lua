--[[ abort
Ask a run to stop. A waiting run ends here, a hold too; the worker of a running one is told.

KEYS[1] root                partition; touches run, lane, heads, s, log, q, wake, inbox, next, steer

ARGV[1] run_id
ARGV[2] reason              kept as the error of the run; the first one stays
ARGV[3] abort_body          encoded abort_requested record
ARGV[4] result              encoded result of a run that had not begun, not compressed
ARGV[5] discard_result      the same for follow-ups that need this run to complete
ARGV[6] keep_ms             how long the ended runs are known

Returns {code, ...}
  ACCEPTED     1 if it ended here, 0 if its worker will end it
  ENDED        state, stop reason: it had ended before, nothing was changed
  UNKNOWN_RUN  0
  NEWER_SCHEMA schema of the lane
]]
--- @include base
--- @include journal
--- @include queue
--- @include ending
--- @include hold
local run_id = ARGV[1]
local run = read_run(run_id)
if not run then return { 'UNKNOWN_RUN', 0 } end
if TERMINAL[run.state] then
  return { 'ENDED', run.state, redis.call('HGET', key('run', run_id), 'stop_reason') }
end
local queued = run.state == 'queued'
if run.abort and not queued then return { 'ACCEPTED', 0 } end
local lane, refused = read_lane(run.session, run.branch)
if refused then return refused end

local now = now_ms()
if run.queue == HOLDS then
  end_hold(lane, run_id, run, 'cancelled', 'external_abort', now)
  return { 'ACCEPTED', 1 }
end
if not run.abort then add_control_record(run.session, 'abort_requested', ARGV[3], now) end
if queued then
  settle(lane, run_id, run, 'cancelled', 'external_abort', ARGV[4], ARGV[5], ARGV[6], now)
  return { 'ACCEPTED', 1 }
end
redis.call('HSET', key('run', run_id), 'abort', ARGV[2])
redis.call('PUBLISH', key('ctl', run.worker), run_id .. '\0' .. ARGV[2])
return { 'ACCEPTED', 0 }

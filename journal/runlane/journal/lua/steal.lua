--[[ steal
Take a run away from its worker, whatever the clock says: it is to be carried on elsewhere, and is
due at once. No crash is counted. A hold ends.

KEYS[1] root                partition; touches run, lane, heads, s, log, q, wake, inbox, next, ctl

ARGV[1] run_id
ARGV[2] request_id          the same request again is recognised
ARGV[3] reason              the worker is told
ARGV[4] body                encoded lease_stolen record

Returns {code, ...}
  ACCEPTED     1
  NOT_HELD     state: nobody holds it
  ENDED        state: it had ended before, nothing was changed
  UNKNOWN_RUN  0
  NEWER_SCHEMA schema of the lane
]]
--- @include base
--- @include journal
--- @include queue
--- @include ending
--- @include hold
local run_id = ARGV[1]
local run_key = key('run', run_id)
local run = read_run(run_id)
if not run then return { 'UNKNOWN_RUN', 0 } end
if redis.call('HGET', run_key, 'stolen') == ARGV[2] then return { 'ACCEPTED', 1 } end
if TERMINAL[run.state] then return { 'ENDED', run.state } end
local lane, refused = read_lane(run.session, run.branch)
if refused then return refused end
if lane.active ~= run_id or (lane.fence == '' and run.queue ~= HOLDS) then return { 'NOT_HELD', run.state } end

local now = now_ms()
redis.call('HSET', run_key, 'stolen', ARGV[2])
if run.queue == HOLDS then
  end_hold(lane, run_id, run, 'cancelled', 'external_abort', now)
  return { 'ACCEPTED', 1 }
end
add_control_record(run.session, 'lease_stolen', ARGV[4], now)
redis.call('HDEL', lane.name, 'fence')
redis.call('HSET', run_key, 'state', 'queued', 'worker', '', 'cause', 'stolen')
redis.call('DEL', 'arq:in-progress:' .. run_id)
enqueue(run_id, run, run.submitted)
redis.call('PUBLISH', key('ctl', run.worker), table.concat({ '', run_id, lane.fence, ARGV[3] }, '\0'))
return { 'ACCEPTED', 1 }

--[[ steer
Say something to the active run of a lane, which hears it before its next model request.

KEYS[1] root                partition; touches lane, run, steer, input, ctl

ARGV[1] session
ARGV[2] branch
ARGV[3] input_id            that the producer chose: the same one again is recognised
ARGV[4] content
ARGV[5] capacity            how many inputs may wait to be heard
ARGV[6] known_ms            how long an accepted one is recognised

Returns {code, ...}
  ACCEPTED     run_id, inputs that wait, this one included
  AGENT_IDLE   "", 0: no run is active
  RUN_CLOSING  run_id, inputs that wait: it was told to stop
  QUEUE_FULL   run_id, inputs that wait
  NEWER_SCHEMA schema of the lane
]]
--- @include base
--- @include queue
local session, branch, input_id = ARGV[1], ARGV[2], ARGV[3]
local run_id, size = string.match(redis.call('GET', key('input', input_id)) or '', '^(%S+) (%d+)$')
if run_id then return { 'ACCEPTED', run_id, tonumber(size) } end
local lane, refused = read_lane(session, branch)
if refused then return refused end
run_id = lane.active
local run = run_id ~= '' and read_run(run_id)
if not run or run.queue == HOLDS then return { 'AGENT_IDLE', '', 0 } end
size = redis.call('LLEN', key('steer', run_id))
if run.abort then return { 'RUN_CLOSING', run_id, size } end
if size >= tonumber(ARGV[5]) then return { 'QUEUE_FULL', run_id, size } end

size = redis.call('RPUSH', key('steer', run_id), input_id .. ' ' .. ARGV[4])
redis.call('HSET', key('run', run_id), 'inputs', 1)
redis.call('SET', key('input', input_id), run_id .. ' ' .. size, 'PX', ARGV[6])
if run.worker ~= '' then
  redis.call('PUBLISH', key('ctl', run.worker),
    table.concat({ '', '', run_id, lane.fence, input_id, ARGV[4] }, '\0'))
end
return { 'ACCEPTED', run_id, size }

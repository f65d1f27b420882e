--[[ hand_back
Give a leased or running run back to the head of its lane; no crash is counted.

KEYS[1] root                partition; touches lane, run, q, wake

ARGV[1] run_id
ARGV[2] session
ARGV[3] branch
ARGV[4] fence

Returns {code, ...}
  OK           1
  FENCED       fence held now; also when it was handed back before
  NEWER_SCHEMA schema of the lane
]]
--- @include base
--- @include queue
local run_id = ARGV[1]
local lane, refused = read_lane(ARGV[2], ARGV[3])
if refused then return refused end
if not holds(lane, run_id, ARGV[4]) then return { 'FENCED', lane.fence } end

local run = read_run(run_id)
redis.call('HDEL', lane.name, 'fence')
redis.call('HSET', key('run', run_id), 'state', 'queued', 'worker', '', 'cause', 'hand_back')
redis.call('DEL', 'arq:in-progress:' .. run_id)
enqueue(run_id, run, run.submitted)
return { 'OK', 1 }

--[[ checkout
Let the holder of a fence begin an attempt, and give it what it must know of the branch.

KEYS[1] root                partition; touches lane, run, heads, log, s, steer

ARGV[1] run_id
ARGV[2] session
ARGV[3] branch
ARGV[4] fence
ARGV[5] page                records to return at once, at least 1

Returns {code, ...}
  OK           head, abort reason or "", inc of the server, records before the head and itself,
               newest first, from the branch's last checkpoint on; none that the stream has no more;
               milliseconds since the first attempt began, inputs that wait
  FENCED       fence held now
  NEWER_SCHEMA schema of the lane
]]
--- @include base
--- @include journal
--- @include steering
local run_id, session, branch = ARGV[1], ARGV[2], ARGV[3]
local lane, refused = read_lane(session, branch)
if refused then return refused end
if not holds(lane, run_id, ARGV[4]) then return { 'FENCED', lane.fence } end

local run_key, now = key('run', run_id), now_ms()
redis.call('HSET', run_key, 'state', 'running')
redis.call('HSETNX', run_key, 'started_ms', now)
local run = redis.call('HMGET', run_key, 'abort', 'started_ms', 'inputs')
local head = redis.call('HGET', key('heads', session), branch) or ''
local entries = {}
if head ~= '' then
  entries = redis.call('XREVRANGE', key('log', session), string.match(head, '^%d+'),
    redis.call('HGET', lane.name, 'checkpoint') or '-', 'COUNT', ARGV[5])
end
return { 'OK', head, run[1] or '', current_inc(), entries, now - run[2], unsettled_inputs(run_id, run[3], '') or {} }

--[[ checkout
Let the holder of a fence begin an attempt, and give it what it must know of the branch.

KEYS[1] root                partition; touches lane, run, heads, log

ARGV[1] run_id
ARGV[2] session
ARGV[3] branch
ARGV[4] fence
ARGV[5] page                records to return at once, at least 1

Returns {code, ...}
  OK           head, abort reason or "", 1 if the server restarted or failed over since the run
               got further last, the session's first records
  FENCED       fence held now
  NEWER_SCHEMA schema of the lane
]]
--- @include base
--- @include journal
local run_id, session, branch = ARGV[1], ARGV[2], ARGV[3]
local lane, refused = read_lane(session, branch)
if refused then return refused end
if not holds(lane, run_id, ARGV[4]) then return { 'FENCED', lane.fence } end

local run_key, inc = key('run', run_id), current_inc()
local run = redis.call('HMGET', run_key, 'abort', 'inc')
redis.call('HSET', run_key, 'state', 'running')
redis.call('HSETNX', run_key, 'inc', inc)
redis.call('HSETNX', run_key, 'started_ms', now_ms())
return { 'OK', redis.call('HGET', key('heads', session), branch) or '', run[1] or '',
  run[2] and run[2] ~= inc and 1 or 0,
  redis.call('XRANGE', key('log', session), '-', '+', 'COUNT', ARGV[5]) }

--[[ renew
Keep a worker registered, and extend the leases of all its runs.

KEYS[1] root                partition; touches workers, lane, run, q

ARGV[1] worker
ARGV[2] lease_ms
ARGV[3...] held             run_id, session, branch, queue, fence: for each run

Returns {lost, aborted}
  lost     ids of runs that another fence holds, or nobody
  aborted  run_id, reason: for each run that is to stop
]]
--- @include base
local now, lease_ms = now_ms(), tonumber(ARGV[2])
local lost, aborted = {}, {}
keep_worker(ARGV[1], now, lease_ms)
for i = 3, #ARGV, 5 do
  local run_id = ARGV[i]
  local lane = read_lane(ARGV[i + 1], ARGV[i + 2])
  if lane and holds(lane, run_id, ARGV[i + 4]) then
    redis.call('ZADD', key('q', ARGV[i + 3]), now + lease_ms, run_id)
    redis.call('SET', 'arq:in-progress:' .. run_id, ARGV[i + 4], 'PX', lease_ms)
    local reason = redis.call('HGET', key('run', run_id), 'abort')
    if reason then
      aborted[#aborted + 1] = run_id
      aborted[#aborted + 1] = reason
    end
  else
    lost[#lost + 1] = run_id
  end
end
return { lost, aborted }

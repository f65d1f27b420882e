--[[ register
Make a worker and the agents that it serves known, or take it off the list again.

KEYS[1] root                partition; touches agents, workers, w

ARGV[1] worker
ARGV[2] lease_ms            how long it is live without a renewal; 0 if it leaves
ARGV[3] info                JSON: host, pid, agents
ARGV[4...] agent            name, version: for each

Returns {code, ...}
  OK           1
]]
--- @include base
local now = now_ms()
redis.call('HSET', key('w', ARGV[1]), 'info', ARGV[3], 'registered_ms', now)
keep_worker(ARGV[1], now, tonumber(ARGV[2]))
for i = 4, #ARGV, 2 do redis.call('HSET', root .. ':agents', ARGV[i], ARGV[i + 1]) end
return { 'OK', 1 }

--[[ drop_dead
Drop dead letters that have been kept for long enough.

KEYS[1] root                partition; touches dead

ARGV[1] age_ms              how long they have been kept
ARGV[2] n                   at most this many

Returns {n}
  n  how many were dropped
]]
--- @include base
local dead, upto = root .. ':dead', now_ms() - ARGV[1]
local found = redis.call('ZRANGEBYSCORE', dead, '-inf', upto, 'LIMIT', 0, ARGV[2])
for _, member in ipairs(found) do
  redis.call('DEL', key('dead', member))
  redis.call('ZREM', dead, member)
end
return { #found }

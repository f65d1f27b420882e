--[[ forget_deleted
Forget that a session was deleted.

KEYS[1] root                partition; touches s, deleted, deletions

ARGV[1] session
ARGV[2] revision            its last one, as it is remembered; "" if it is not

Returns {code, ...}
  OK           1
  KEPT         0: it is being deleted again, or has been
]]
--- @include base
local session, deleted = ARGV[1], root .. ':deleted'
local again = redis.call('HGET', key('s', session), 'state') == 'deleting'
if again or (redis.call('HGET', deleted, session) or '') ~= ARGV[2] then return { 'KEPT', 0 } end

redis.call('HDEL', deleted, session)
redis.call('ZREM', root .. ':deletions', session)
return { 'OK', 1 }

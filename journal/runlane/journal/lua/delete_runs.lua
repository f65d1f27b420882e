--[[ delete_runs
Forget runs of a session that is being deleted, with all that is kept of each.

KEYS[1] root                partition; touches s, run, part, dead, idem

ARGV[1] session
ARGV[2] deletion            what names the deletion
ARGV[3...] run_id           as the session's records name them; they may be another session's

Returns {code, ...}
  OK           1
  GONE         0: another caller has deleted the session
]]
--- @include base
local session = ARGV[1]
if redis.call('HGET', key('s', session), 'deletion') ~= ARGV[2] then return { 'GONE', 0 } end

for i = 3, #ARGV do
  local run_id = ARGV[i]
  local run = redis.call('HMGET', key('run', run_id), 'session', 'idem')
  if not run[1] or run[1] == session then
    if run[2] then redis.call('DEL', key('idem', session .. '/' .. run[2])) end
    redis.call('DEL', key('run', run_id), key('part', run_id), key('dead', run_id))
    redis.call('ZREM', root .. ':dead', run_id)
    redis.call('DEL', 'arq:job:' .. run_id, 'arq:in-progress:' .. run_id, 'arq:result:' .. run_id)
  end
end
return { 'OK', 1 }

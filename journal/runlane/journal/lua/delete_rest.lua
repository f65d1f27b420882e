--[[ delete_rest
Remove what is left of a session whose runs and archive are gone, and remember its last revision: one
of the same name goes on from there.

KEYS[1] root                partition; touches s, heads, jumps, lane, inbox, next, log, staged, blob,
                            blobs, orphans, sessions, archive, deleted, deletions

ARGV[1] session
ARGV[2] deletion            what names the deletion
ARGV[3] keep_ms             how long to remember it

Returns {code, ...}
  OK           1
  GONE         0: another caller has deleted the session
]]
--- @include base
--- @include journal
--- @include blobs
--- @include upkeep
local session = ARGV[1]
local name = key('s', session)
if redis.call('HGET', name, 'deletion') ~= ARGV[2] then return { 'GONE', 0 } end

for _, branch in ipairs(branches_of(session)) do
  local place = session .. '/' .. branch
  redis.call('UNLINK', key('lane', place), key('inbox', place), key('next', place))
end
for _, digest in ipairs(redis.call('SMEMBERS', key('blobs', session))) do drop_blob(session, digest) end
redis.call('HSET', root .. ':deleted', session, last_revision(session))
redis.call('ZADD', root .. ':deletions', now_ms() + ARGV[3], session)
redis.call('ZREM', root .. ':sessions', session)
redis.call('ZREM', root .. ':archive', session)
redis.call('UNLINK', name, key('heads', session), key('jumps', session), key('log', session), key('staged', session))
return { 'OK', 1 }

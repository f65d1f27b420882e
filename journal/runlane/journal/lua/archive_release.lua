--[[ archive_release
Give a session back whose records have gone to the archive: it is due again when more may go.

KEYS[1] root                partition; touches s, log, heads, jumps, lane, archive, deleted

ARGV[1] session
ARGV[2] token               of the archiver
ARGV[3] cold_ms             how old the head of an idle lane is when it may go

Returns {code, ...}
  OK           1
  FENCED       token held now; also when it was given back before
  NEWER_SCHEMA schema of a lane
]]
--- @include base
--- @include journal
--- @include upkeep
local session, cold_ms = ARGV[1], tonumber(ARGV[3])
local name = key('s', session)
local held = redis.call('HGET', name, 'archive_fence') or ''
if held ~= ARGV[2] then return { 'FENCED', held } end
local now = now_ms()
local first, cold_at, refused = first_kept(session, now, cold_ms)
if refused then return refused end

redis.call('HDEL', name, 'archive_fence')
schedule(session, first, cold_at, now, cold_ms)
return { 'OK', 1 }

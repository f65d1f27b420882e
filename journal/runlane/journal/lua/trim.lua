--[[ trim
Note how far a session is archived, and let its stream drop records that are.

KEYS[1] root                partition; touches s, log, heads, jumps, lane, blob, orphans, archive,
                            deleted

ARGV[1] session
ARGV[2] token               of the archiver
ARGV[3] archived            revision up to which the archive has all records
ARGV[4] segment             the segment that ends there; it is on disk
ARGV[5] upto                revision up to which the stream drops them
ARGV[6] cold_ms             how old the head of an idle lane is when it may go
ARGV[7] lease_ms            how long the session is the archiver's from now on
ARGV[8...] blob             digests that the dropped records name, once for each that does

Returns {code, ...}
  OK           1
  DUP          1: it was like that before
  FENCED       token held now
  UNARCHIVED   revision up to which the archive is known to have all records
  HEAD         first revision that the stream has to keep
  NEWER_SCHEMA schema of a lane

O(n) in the dropped records and O(branches).
]]
--- @include base
--- @include journal
--- @include blobs
--- @include upkeep
local session, segment = ARGV[1], ARGV[4]
local name = key('s', session)
local archived, upto = tonumber(ARGV[3]), tonumber(ARGV[5])
local held = redis.call('HGET', name, 'archive_fence') or ''
if held ~= ARGV[2] then return { 'FENCED', held } end
local trimmed_before, archived_before, segment_before = archived_of(session)
if segment == segment_before and archived == archived_before and upto == trimmed_before then return { 'DUP', 1 } end

local first, last = archived_before, archived_before
if segment ~= segment_before then
  first, last = string.match(segment, '/(%d+)%-(%d+)%-%x+%.jsonl$')
  first, last = tonumber(first or 0) - 1, tonumber(last)
end
if first ~= archived_before or last ~= archived or archived > last_revision(session) or upto > archived then
  return { 'UNARCHIVED', archived_before }
end
local now = now_ms()
if upto > trimmed_before then
  local kept, _, refused = first_kept(session, now, tonumber(ARGV[6]))
  if refused then return refused end
  if upto >= kept then return { 'HEAD', kept } end
end

redis.call('HSET', name, 'archived', archived, 'segment', segment, 'trimmed', math.max(upto, trimmed_before))
if upto > trimmed_before then
  redis.call('XTRIM', key('log', session), 'MINID', '=', string.format('%d', upto + 1))
  for i = 8, #ARGV do release_blob(session, ARGV[i], now) end
end
redis.call('ZADD', root .. ':archive', 'XX', now + ARGV[7], session)
return { 'OK', 1 }

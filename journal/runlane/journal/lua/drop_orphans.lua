--[[ drop_orphans
Drop blobs that no record has named for a while: their writer died before it could, or the records
that named them went to the archive, and the blobs before them.

KEYS[1] root                partition; touches orphans, blob, blobs

ARGV[1] age_ms              how long none has
ARGV[2] n                   at most this many

Returns {n}
  n  how many were dropped
]]
--- @include base
--- @include journal
--- @include blobs
local upto = now_ms() - ARGV[1]
local found = redis.call('ZRANGEBYSCORE', root .. ':orphans', '-inf', upto, 'LIMIT', 0, ARGV[2])
for _, each in ipairs(found) do drop_blob(string.match(each, '^(.*)/(.*)$')) end
return { #found }

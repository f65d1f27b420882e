--[[ put_blob
Keep content beside a journal, if the caller holds the lane; a record may name it once it is whole.
It comes in pieces, so that a large one holds nobody up.

KEYS[1] root                partition; touches lane, upload, blob, blobs, orphans

ARGV[1] run_id
ARGV[2] session
ARGV[3] branch
ARGV[4] fence
ARGV[5] digest              SHA-256 of the content, 64 hexadecimal digits
ARGV[6] size                bytes of the content
ARGV[7] media_type
ARGV[8] upload              where its pieces gather: the same for all of them
ARGV[9] index               of this piece, from 0, in this order
ARGV[10] count              pieces in all, at least 1
ARGV[11] piece              the content, compressed if that is shorter, is all of them joined
ARGV[12] keep_ms            how long to wait for the next piece

Returns {code, ...}
  OK           0
  EXISTS       records that name it: the session has this content already, no more is needed
  MORE         index of the next piece
  LOST         pieces that are here: begin again
  FENCED       fence held now
  NEWER_SCHEMA schema of the lane

Until a record names it, it is an orphan as of the last time that it was put.
]]
--- @include base
--- @include journal
local session, digest = ARGV[2], ARGV[5]
local lane, refused = read_lane(session, ARGV[3])
if refused then return refused end
if not holds(lane, ARGV[1], ARGV[4]) then return { 'FENCED', lane.fence } end

local now, name, upload = now_ms(), blob_key(session, digest), key('upload', session .. '/' .. ARGV[8])
local refs = redis.call('HGET', name, 'refs')
if refs then
  if refs == '0' then redis.call('ZADD', root .. ':orphans', now, session .. '/' .. digest) end
  redis.call('UNLINK', upload)
  return { 'EXISTS', refs }
end
local index, count = tonumber(ARGV[9]), tonumber(ARGV[10])
redis.call('HSET', upload, index == 0 and 'data' or 'data' .. index, ARGV[11])
redis.call('PEXPIRE', upload, ARGV[12])
if index + 1 < count then return { 'MORE', index + 1 } end
local here = redis.call('HLEN', upload)
if here < count then return { 'LOST', here } end

redis.call('RENAME', upload, name)
redis.call('PERSIST', name)
redis.call('HSET', name, 'pieces', count, 'size', ARGV[6], 'media_type', ARGV[7], 'refs', 0, 'at_ms', now)
redis.call('SADD', key('blobs', session), digest)
redis.call('ZADD', root .. ':orphans', now, session .. '/' .. digest)
return { 'OK', 0 }

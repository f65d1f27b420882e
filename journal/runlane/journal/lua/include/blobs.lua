-- Blobs of a session: content that is too large for a record. `refs` counts the records in the
-- stream that brought one (what repeats their messages, as a checkpoint does, does not count);
-- while there are none it is listed as an orphan, and dropped in the end.

local function orphan(session, digest)
  return session .. '/' .. digest
end

-- A record that names a blob is no longer in the stream.
local function release_blob(session, digest, now)
  local name = blob_key(session, digest)
  if redis.call('EXISTS', name) == 1 and redis.call('HINCRBY', name, 'refs', -1) <= 0 then
    redis.call('ZADD', root .. ':orphans', now, orphan(session, digest))
  end
end

local function drop_blob(session, digest)
  redis.call('UNLINK', blob_key(session, digest))
  redis.call('SREM', key('blobs', session), digest)
  redis.call('ZREM', root .. ':orphans', orphan(session, digest))
end

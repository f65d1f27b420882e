--[[ keep_lost
Keep records that the server had and lost, as a branch of their own. Nobody holds its fence, since
it is new.

KEYS[1] root                partition; touches s, sessions, deleted, heads, log, lane, jumps, blob,
                            archive

ARGV[1] session
ARGV[2] branch              the new one
ARGV[3] base                record id of the last record that the server has, "" if it has none
ARGV[4] request_id          the same request again is recognised
ARGV[5] jump                encoded: where the branch goes on from; read by list and ancestor tests
ARGV[6] agent               of the session, in case the server has lost that too
ARGV[7] revision            of the first lost record
ARGV[8] last_run            run that ended last on the branch, "" if none did
ARGV[9] last_stop           why it ended
ARGV[10] n                  number of entries, at least 1; branch_created is the first
ARGV[11...] entry           kind, hash, data, digests of the blobs that it names: n times, oldest
                            first

Returns {code, ...}
  OK             head
  DUP            head: this very request was carried out before
  BRANCH_EXISTS  head
  DELETED        revision: the session was deleted since, the records are not lost
  MISSING_BLOB   digest
  SESSION_CLOSED why: deleting or importing
  NEWER_SCHEMA   schema of the lane
]]
--- @include base
--- @include journal
local session, branch = ARGV[1], ARGV[2]
local lane, refused = read_lane(session, branch)
if refused then return refused end
local last = redis.call('HMGET', lane.name, 'request', 'reply')
if last[1] == ARGV[4] then return { 'DUP', last[2] } end
refused = refuse_closed(session)
if refused then return refused end
local found = redis.call('HGET', key('heads', session), branch)
if found then return { 'BRANCH_EXISTS', found } end
local deleted = tonumber(redis.call('HGET', root .. ':deleted', session) or '0')
if deleted >= tonumber(ARGV[7]) then return { 'DELETED', deleted } end
local n = tonumber(ARGV[10])
local missing = missing_blob(session, 11, n)
if missing then return { 'MISSING_BLOB', missing } end

local now = now_ms()
local head, ids = add_records(session, branch, ARGV[3], 11, n, now)
redis.call('HSETNX', key('s', session), 'agent', ARGV[6])
redis.call('HSETNX', key('s', session), 'created_ms', now)
redis.call('ZADD', root .. ':sessions', 'NX', now, session)
redis.call('HSET', key('jumps', session), ids.branch_created, ARGV[5])
redis.call('HSET', lane.name, 'schema', LANE_SCHEMA, 'request', ARGV[4], 'reply', head)
if ARGV[8] ~= '' then redis.call('HSET', lane.name, 'last_run', ARGV[8], 'last_stop', ARGV[9]) end
note_checkpoint(lane, session, ids, now)
return { 'OK', head }

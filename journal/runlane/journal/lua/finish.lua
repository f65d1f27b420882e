--[[ finish
End a run: its last records, its result, the lease off, and the next run of the lane into the queue.

KEYS[1] root                partition; touches lane, run, heads, s, log, q, wake, inbox, next, blob, orphans,
                            archive, steer

ARGV[1] run_id
ARGV[2] session
ARGV[3] branch
ARGV[4] fence
ARGV[5] request_id          the same request again is recognised
ARGV[6] head                record id that the caller built on
ARGV[7] status              completed | failed | cancelled | rejected
ARGV[8] stop_reason
ARGV[9] heard_end           run_finished as subscribers get it, with all of the result
ARGV[10] discard_result     encoded result of follow-ups that need this run to complete
ARGV[11] keep_ms            how long the ended runs are known
ARGV[12] cold_ms            how old the head of an idle lane is when it may go to the archive
ARGV[13] settled            ids of the inputs that the entries settle, each between spaces
ARGV[14] n                  number of entries, at least 1; run_finished is one of them
ARGV[15...] entry           kind, hash, data, digests of the blobs that it names: n times, oldest
                            first; one without a kind is an event, heard at this place and not kept

Returns {code, ...}
  OK           new head, time of the records
  DUP          the same: this very request was carried out before
  ABORTED      reason: an accepted abort wins over this end, nothing was written
  PENDING      inputs that wait and are not settled here, nothing was written
  FENCED       fence held now
  CONFLICT     head of the branch
  MISSING_BLOB digest
  NEWER_SCHEMA schema of the lane
]]
--- @include base
--- @include journal
--- @include queue
--- @include steering
--- @include ending
local run_id, session, branch, status = ARGV[1], ARGV[2], ARGV[3], ARGV[7]
local last = redis.call('HMGET', key('run', run_id), 'request', 'reply')
if last[1] == ARGV[5] then return { 'DUP', last[2], time_of(session, last[2]) } end
local lane, refused = read_lane(session, branch)
if refused then return refused end
if not holds(lane, run_id, ARGV[4]) then return { 'FENCED', lane.fence } end
local found = redis.call('HGET', key('heads', session), branch) or ''
if found ~= ARGV[6] then return { 'CONFLICT', found } end
local run = read_run(run_id)
if run.abort and status ~= 'cancelled' then return { 'ABORTED', run.abort } end

local inputs = unsettled_inputs(run_id, run.inputs, ARGV[13])
if inputs then return { 'PENDING', inputs } end

local n = tonumber(ARGV[14])
local missing = missing_blob(session, 15, n)
if missing then return { 'MISSING_BLOB', missing } end

local now = now_ms()
local head, ids = add_records(session, branch, ARGV[6], 15, n, now, ARGV[9])
redis.call('HSET', key('run', run_id), 'request', ARGV[5], 'reply', head)
note_begin(run_id, ids)
note_checkpoint(lane, session, ids, now)
end_active(lane, run_id, run, status, ARGV[8], ids.run_finished, ARGV[10], ARGV[11], now)
look_at(session, now + ARGV[12])
return { 'OK', head, now }

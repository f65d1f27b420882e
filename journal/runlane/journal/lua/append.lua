--[[ append
Append records to a branch, if the caller holds its fence and has seen its head.

KEYS[1] root                partition; touches lane, run, heads, s, log, blob, orphans, steer

ARGV[1] run_id
ARGV[2] session
ARGV[3] branch
ARGV[4] fence
ARGV[5] request_id          the same request again is recognised
ARGV[6] head                record id that the caller built on, "" for an empty branch
ARGV[7] progress            1 if the run got further, 0 for the mere start of an attempt
ARGV[8] settled             ids of the inputs that the entries settle, each between spaces
ARGV[9] n                   number of entries, at least 1
ARGV[10...] entry           kind, hash, data, digests of the blobs that it names: n times, oldest
                            first; one without a kind is an event, heard at this place and not kept

Returns {code, ...}
  OK           new head, abort reason or "", time of the records, inputs that wait if there are any
  DUP          the same, with what is known by now: this very request was carried out before
  FENCED       fence held now
  CONFLICT     head of the branch
  MISSING_BLOB digest
  NEWER_SCHEMA schema of the lane

All or nothing. O(n) in the records.
]]
--- @include base
--- @include journal
--- @include steering
local run_id, session, branch = ARGV[1], ARGV[2], ARGV[3]
local run_key = key('run', run_id)
local run = redis.call('HMGET', run_key, 'request', 'reply', 'abort', 'crashes_row', 'inputs')
if run[1] == ARGV[5] then
  return { 'DUP', run[2], run[3] or '', time_of(session, run[2]), unsettled_inputs(run_id, run[5], '') }
end
local lane, refused = read_lane(session, branch)
if refused then return refused end
if not holds(lane, run_id, ARGV[4]) then return { 'FENCED', lane.fence } end
local found = redis.call('HGET', key('heads', session), branch) or ''
if found ~= ARGV[6] then return { 'CONFLICT', found } end

local n = tonumber(ARGV[9])
local missing = missing_blob(session, 10, n)
if missing then return { 'MISSING_BLOB', missing } end

local now = now_ms()
local head, ids = add_records(session, branch, ARGV[6], 10, n, now)
redis.call('HSET', run_key, 'request', ARGV[5], 'reply', head)
note_begin(run_id, ids)
if ARGV[7] == '1' and run[4] then redis.call('HDEL', run_key, 'crashes_row') end
note_checkpoint(lane, session, ids, now)
local inputs = unsettled_inputs(run_id, run[5], ARGV[8])
if run[5] and ARGV[8] ~= '' then keep_inputs(run_id, inputs) end
return { 'OK', head, run[3] or '', now, inputs }

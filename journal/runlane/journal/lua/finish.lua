--[[ finish
End a run: its last records, its result, the lease off, and the next run of the lane into the queue.

KEYS[1] root                partition; touches lane, run, heads, s, log, q, wake, inbox, next

ARGV[1] run_id
ARGV[2] session
ARGV[3] branch
ARGV[4] fence
ARGV[5] request_id          the same request again is recognised
ARGV[6] head                record id that the caller built on
ARGV[7] status              completed | failed | cancelled | rejected
ARGV[8] stop_reason
ARGV[9] result              encoded result, not compressed
ARGV[10] discard_result     the same for follow-ups that need this run to complete
ARGV[11] n                  number of entries, at least 1; run_finished is the last
ARGV[12...] entry           kind, hash, data: n times, oldest first; an entry without a kind is
                            a provisional event that is published at this place

Returns {code, ...}
  OK           new head
  DUP          new head: this very request was carried out before
  ABORTED      reason: an accepted abort wins over this end, nothing was written
  FENCED       fence held now
  CONFLICT     head of the branch
  NEWER_SCHEMA schema of the lane
]]
--- @include base
--- @include journal
--- @include queue
--- @include ending
local run_id, session, branch, status = ARGV[1], ARGV[2], ARGV[3], ARGV[7]
local last = redis.call('HMGET', key('run', run_id), 'request', 'reply')
if last[1] == ARGV[5] then return { 'DUP', last[2] } end
local lane, refused = read_lane(session, branch)
if refused then return refused end
if not holds(lane, run_id, ARGV[4]) then return { 'FENCED', lane.fence } end
local found = redis.call('HGET', key('heads', session), branch) or ''
if found ~= ARGV[6] then return { 'CONFLICT', found } end
local run = read_run(run_id)
if run.abort and status ~= 'cancelled' then return { 'ABORTED', run.abort } end

local now = now_ms()
local head = add_records(session, branch, ARGV[6], 12, tonumber(ARGV[11]), now)
redis.call('HSET', key('run', run_id), 'request', ARGV[5], 'reply', head)
end_active(lane, run_id, run, status, ARGV[8], ARGV[9], ARGV[10], now)
return { 'OK', head }

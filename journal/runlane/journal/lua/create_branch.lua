--[[ create_branch
Begin a branch at a record of its session. What cannot change is checked before: that the base is a
record of the source branch, and that no run is open there.

KEYS[1] root                partition; touches s, heads, log, lane, jumps

ARGV[1] session
ARGV[2] branch              the new one
ARGV[3] base                record id that it goes on from, "" for an empty branch
ARGV[4] body                encoded branch_created record
ARGV[5] last_run            run that ended last at the base, "" if none did
ARGV[6] last_stop           why it ended
ARGV[7] request_id          the same request again is recognised
ARGV[8] jump                encoded: where the branch goes on from; read by list and ancestor tests

Returns {code, ...}
  OK              record id of branch_created, the head of the branch
  DUP             the same: this very request was carried out before
  BRANCH_EXISTS   head
  UNKNOWN_SESSION 0
  SESSION_CLOSED  why: deleting or importing
  NEWER_SCHEMA    schema of the lane
]]
--- @include base
--- @include journal
--- @include jump
local session, branch = ARGV[1], ARGV[2]
local lane, refused = read_lane(session, branch)
if refused then return refused end
local last = redis.call('HMGET', lane.name, 'request', 'reply')
if last[1] == ARGV[7] then return { 'DUP', last[2] } end
refused = refuse_closed(session)
if refused then return refused end
if redis.call('EXISTS', key('s', session)) == 0 then return { 'UNKNOWN_SESSION', 0 } end
local found = redis.call('HGET', key('heads', session), branch)
if found or branch == 'main' then return { 'BRANCH_EXISTS', found or '' } end

return { 'OK', add_jump(lane, session, branch, 'branch_created', ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]) }

--[[ promote
Let `main` go on from the head of another branch. Nothing runs or waits in `main` meanwhile.

KEYS[1] root                partition; touches s, heads, log, lane, jumps

ARGV[1] session
ARGV[2] head                of main, as the caller saw it, "" if it has no record
ARGV[3] base                record id that it goes on from, at which no run is open
ARGV[4] body                encoded branch_promoted record
ARGV[5] last_run            run that ended last at the base, "" if none did
ARGV[6] last_stop           why it ended
ARGV[7] request_id          the same request again is recognised
ARGV[8] jump                encoded: where the branch goes on from; read by list and ancestor tests

Returns {code, ...}
  OK              record id of branch_promoted, the new head of main
  DUP             the same: this very request was carried out before
  CONFLICT        head of main
  LANE_BUSY       run_id that is active in main, who holds that one or "", its intent
  UNKNOWN_SESSION 0
  SESSION_CLOSED  why: deleting or importing
  NEWER_SCHEMA    schema of the lane
]]
--- @include base
--- @include journal
--- @include jump
local session = ARGV[1]
local lane, refused = read_lane(session, 'main')
if refused then return refused end
local last = redis.call('HMGET', lane.name, 'request', 'reply')
if last[1] == ARGV[7] then return { 'DUP', last[2] } end
refused = refuse_closed(session)
if refused then return refused end
if redis.call('EXISTS', key('s', session)) == 0 then return { 'UNKNOWN_SESSION', 0 } end
local found = redis.call('HGET', key('heads', session), 'main') or ''
if found ~= ARGV[2] then return { 'CONFLICT', found } end
if lane.active ~= '' then return { 'LANE_BUSY', lane.active, unpack(active_run(lane)) } end

return { 'OK', add_jump(lane, session, 'main', 'branch_promoted', ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]) }

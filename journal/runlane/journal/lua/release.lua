--[[ release
Give a hold up, whether it has the lane or waits for it: the next one in the lane goes on.

KEYS[1] root                partition; touches run, lane, inbox, next, q, wake, heads, s, log

ARGV[1] run_id              of the hold
ARGV[2] wrote               1 if the holder appended anything, 0 if not
ARGV[3] last_run            run that ended last on the branch then, "" if none did
ARGV[4] last_stop           why it ended

Returns {code, ...}
  OK           1
  ENDED        state: completed if it was given up before, "" if nothing is known of it
  NEWER_SCHEMA schema of the lane
]]
--- @include base
--- @include journal
--- @include queue
--- @include ending
--- @include hold
local run_id = ARGV[1]
local run = read_run(run_id)
if not run then return { 'ENDED', '' } end
if TERMINAL[run.state] then return { 'ENDED', run.state } end
local lane, refused = read_lane(run.session, run.branch)
if refused then return refused end

if ARGV[2] == '1' then
  redis.call('HDEL', lane.name, 'last_run', 'last_stop')
  if ARGV[3] ~= '' then redis.call('HSET', lane.name, 'last_run', ARGV[3], 'last_stop', ARGV[4]) end
end
end_hold(lane, run_id, run, 'completed', '', now_ms())
return { 'OK', 1 }

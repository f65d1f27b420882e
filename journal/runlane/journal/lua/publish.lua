--[[ publish
Let subscribers hear provisional events, if the caller still holds the lane.

KEYS[1] root                partition; touches lane, heads, part

ARGV[1] run_id
ARGV[2] session
ARGV[3] branch
ARGV[4] fence
ARGV[5] text                what the model said since the last call, "" for nothing
ARGV[6] text_place          "<attempt>:<turn>" that the text belongs to
ARGV[7] text_ms             how long the partial text is kept
ARGV[8...] message          encoded event

Returns {code, ...}
  OK           1
  FENCED       fence held now; nobody heard anything
  NEWER_SCHEMA schema of the lane
]]
--- @include base
--- @include journal
local lane, refused = read_lane(ARGV[2], ARGV[3])
if refused then return refused end
if not holds(lane, ARGV[1], ARGV[4]) then return { 'FENCED', lane.fence } end

if ARGV[5] ~= '' then
  local part = key('part', ARGV[1])
  local place = ARGV[6] .. ' '
  if redis.call('GETRANGE', part, 0, #place - 1) ~= place then redis.call('SET', part, place) end
  redis.call('APPEND', part, ARGV[5])
  redis.call('PEXPIRE', part, ARGV[7])
end
local head = redis.call('HGET', key('heads', ARGV[2]), ARGV[3]) or ''
for i = 8, #ARGV do publish_event(ARGV[2], string.match(head, '^%d*'), ARGV[i]) end
return { 'OK', 1 }

--[[ finish_import
Let everybody see an imported session: its records, its branches and its lanes, all at once.

KEYS[1] root                partition; touches s, staged, log, heads, jumps, lane, sessions, archive

ARGV[1] session
ARGV[2] token               of the import
ARGV[3] request_id          the same request again is recognised
ARGV[4] head                record id of the last record that was put aside
ARGV[5] agent               that the session is bound to, "" to let its first run bind it
ARGV[6...] branch           name, head, last_run, last_stop, checkpoint, jump_id, jump: for each.
                            last_run: run that ended last, "" if none did; last_stop: why;
                            checkpoint: revision that a checkout may begin at, "" for none;
                            jump_id: record id of its branch_created, "" for main;
                            jump: encoded, read by list and ancestor tests, "" for main

Returns {code, ...}
  OK   last revision of the session
  DUP  the same: this very request was carried out before
  LOST head of what is there, "" if nothing is
]]
--- @include base
local session, head = ARGV[1], ARGV[4]
local name, log = key('s', session), key('log', session)
local revision = tonumber(string.match(head, '^%d+'))
local found = redis.call('HMGET', name, 'state', 'import_request', 'import_head')
if found[2] == ARGV[3] then return { 'DUP', revision } end
if found[1] ~= 'importing:' .. ARGV[2] or found[3] ~= head then return { 'LOST', found[3] or '' } end

local now = now_ms()
redis.call('RENAME', key('staged', session), log)
redis.call('PERSIST', log)
redis.call('PERSIST', name)
redis.call('HDEL', name, 'state', 'import_head', 'import_first')
redis.call('HSET', name, 'import_request', ARGV[3], 'imported', 1, 'rev', revision, 'created_ms', now)
if ARGV[5] ~= '' then redis.call('HSET', name, 'agent', ARGV[5]) end
for at = 6, #ARGV, 7 do
  local lane = key('lane', session .. '/' .. ARGV[at])
  redis.call('HSET', key('heads', session), ARGV[at], ARGV[at + 1])
  redis.call('HSET', lane, 'schema', LANE_SCHEMA)
  if ARGV[at + 2] ~= '' then redis.call('HSET', lane, 'last_run', ARGV[at + 2], 'last_stop', ARGV[at + 3]) end
  if ARGV[at + 4] ~= '' then redis.call('HSET', lane, 'checkpoint', ARGV[at + 4]) end
  if ARGV[at + 5] ~= '' then redis.call('HSET', key('jumps', session), ARGV[at + 5], ARGV[at + 6]) end
end
redis.call('ZADD', root .. ':sessions', now, session)
redis.call('ZADD', root .. ':archive', now, session)
redis.call('PUBLISH', key('ev', session), 'D' .. string.match(head, '^[^.]+'))
return { 'OK', revision }

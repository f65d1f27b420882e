--[[ import_records
Put records of a session that is being imported aside, behind those of earlier calls. Nobody sees
them before finish_import; if nothing more comes they vanish, and the session's name is free again.

KEYS[1] root                partition; touches s, staged, deleted

ARGV[1] session
ARGV[2] token               of the import
ARGV[3] request_id          the same request again is recognised
ARGV[4] head                record id of the last record so far, "" for the first call
ARGV[5] keep_ms             how long to wait for the next call
ARGV[6...] record           branch, parent, kind, hash, data: for each, at least one, parents first;
                            a parent is a record id, "" for none, "@i" for the i-th one of this call

Returns {code, ...}
  OK             revision of the first record, inc of all of them
  DUP            the same: this very request was carried out before
  SESSION_EXISTS why its name is taken: "", deleting or importing
  LOST           head of what is there, "" if nothing is
]]
--- @include base
--- @include journal
local session = ARGV[1]
local name, staged = key('s', session), key('staged', session)
local found = redis.call('HMGET', name, 'state', 'import_request', 'import_head', 'import_first')
if found[2] == ARGV[3] then
  return { 'DUP', tonumber(found[4]), string.match(found[3], '^%d+%-(%d+)') }
end
if ARGV[4] ~= '' then
  if found[1] ~= 'importing:' .. ARGV[2] or found[3] ~= ARGV[4] then return { 'LOST', found[3] or '' } end
elseif redis.call('EXISTS', name) == 1 then
  return { 'SESSION_EXISTS', found[1] or '' }
else
  redis.call('UNLINK', staged)
end

local inc, now = current_inc(), now_ms()
local revision = tonumber(string.match(ARGV[4], '^%d+') or last_revision(session))
local first, ids = revision + 1, {}
for at = 6, #ARGV, 5 do
  revision = revision + 1
  local place = string.match(ARGV[at + 1], '^@(%d+)$')
  local record = { revision = revision, inc = inc, branch = ARGV[at], kind = ARGV[at + 2], hash = ARGV[at + 3],
    parent = place and ids[tonumber(place)] or ARGV[at + 1], data = ARGV[at + 4], now = now }
  ids[#ids + 1] = store_record(staged, record) .. '.' .. record.hash
end
redis.call('HSET', name, 'state', 'importing:' .. ARGV[2], 'import_request', ARGV[3],
  'import_head', ids[#ids], 'import_first', first)
redis.call('PEXPIRE', name, ARGV[5])
redis.call('PEXPIRE', staged, ARGV[5])
return { 'OK', first, inc }

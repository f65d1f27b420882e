--[[ drop_import
Give an import up: what was put aside goes, and the session's name is free again.

KEYS[1] root                partition; touches s, staged

ARGV[1] session
ARGV[2] token               of the import

Returns {code, ...}
  OK   1: nothing of the import is there any more
  LOST why: the name is free already, or what bears it is not this import
]]
--- @include base
local session = ARGV[1]
local name = key('s', session)
local state = redis.call('HGET', name, 'state')
if state ~= 'importing:' .. ARGV[2] then return { 'LOST', state or '' } end
redis.call('UNLINK', name, key('staged', session))
return { 'OK', 1 }

-- A branch goes on from a record that is not its own last one. Returns the record id of its new head.
local function add_jump(lane, session, branch, kind, base, body, last_run, last_stop, request_id, jump)
  local head = add_own_record(session, branch, kind, body, now_ms(), base)
  redis.call('HDEL', lane.name, 'checkpoint', 'last_run', 'last_stop')
  redis.call('HSET', key('jumps', session), head, jump)
  redis.call('HSET', lane.name, 'schema', LANE_SCHEMA, 'request', request_id, 'reply', head)
  if last_run ~= '' then redis.call('HSET', lane.name, 'last_run', last_run, 'last_stop', last_stop) end
  return head
end

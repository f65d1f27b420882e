-- What was said to a run while it goes on lies in a list, as "<input id> <content>", until the journal
-- says what became of it. The field `inputs` of the run says that there is any, so that looking for
-- it costs nothing where there is none.

-- The inputs of a run, without those whose ids stand between spaces in `settled`; nil if none is left.
local function unsettled_inputs(run_id, any, settled)
  if not any then return nil end
  local inputs = {}
  for _, input in ipairs(redis.call('LRANGE', key('steer', run_id), 0, -1)) do
    local id = string.match(input, '^%S+')
    if not string.find(settled, ' ' .. id .. ' ', 1, true) then inputs[#inputs + 1] = input end
  end
  return inputs[1] and inputs or nil
end

local function keep_inputs(run_id, inputs)
  redis.call('DEL', key('steer', run_id))
  if inputs then
    redis.call('RPUSH', key('steer', run_id), unpack(inputs))
  else
    redis.call('HDEL', key('run', run_id), 'inputs')
  end
end

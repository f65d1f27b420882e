-- How a hold ends. It leaves no record, and its run hash for a while: a repeated request finds it.
local HOLD_KNOWN_MS = 3600000
local SILENT_AT_ONCE = 10

-- `state` is completed if it was given up, cancelled if it was taken away, failed if it fell silent.
local function end_hold(lane, run_id, run, state, stop_reason, now)
  local name = key('run', run_id)
  redis.call('HSET', name, 'state', state, 'stop_reason', stop_reason, 'finished_ms', now)
  redis.call('HDEL', name, 'worker', 'lease_ms')
  redis.call('PEXPIRE', name, HOLD_KNOWN_MS)
  redis.call('ZREM', key('q', HOLDS), run_id)
  if state == 'completed' then
    redis.call('DEL', key('wake', HOLDS .. '/' .. run_id))
  else
    wake_holder(run_id)
  end
  if lane.active == run_id then
    advance(lane, run.session, run.branch, 'completed', '', 0, now)
  else
    redis.call('LREM', key('inbox', run.session .. '/' .. run.branch), 1, run_id)
  end
end

-- Lets lanes go on whose holder died, or was not there when its turn came.
local function drop_silent_holds(now)
  local due = redis.call('ZRANGEBYSCORE', key('q', HOLDS), '-inf', now, 'LIMIT', 0, SILENT_AT_ONCE)
  for _, run_id in ipairs(due) do
    local run = redis.call('TYPE', key('run', run_id)).ok == 'hash' and read_run(run_id)
    local lane, refused
    if run then lane, refused = read_lane(run.session, run.branch) end
    if refused then
      redis.call('ZADD', key('q', HOLDS), now + 1000, run_id)
    elseif lane and lane.active == run_id then
      end_hold(lane, run_id, run, 'failed', 'worker_lost', now)
    else
      redis.call('ZREM', key('q', HOLDS), run_id)
    end
  end
end

-- How a run leaves its lane: its result is stored, and in the same step the next one is enqueued.

local function store_end(run_id, run, status, stop_reason, result, now)
  local name = key('run', run_id)
  redis.call('HSET', name, 'state', status, 'stop_reason', stop_reason, 'result', result, 'finished_ms', now)
  redis.call('HDEL', name, 'job', 'worker', 'abort')
  redis.call('DEL', key('part', run_id))
  mirror_result(run_id, run, status, stop_reason, now)
end

-- run_finished {run_id, branch_id, result}, built from a result that is encoded already.
local function finished_body(run_id, branch, result)
  return '\131' .. cmsgpack.pack('run_id') .. cmsgpack.pack(run_id) .. cmsgpack.pack('branch_id')
    .. cmsgpack.pack(branch) .. cmsgpack.pack('result') .. result
end

local function settle_waiting(run_id, run, status, stop_reason, result, now)
  add_control_record(run.session, 'run_finished', finished_body(run_id, run.branch, result), now)
  store_end(run_id, run, status, stop_reason, result, now)
end

-- After the active run ended as `status`: follow-ups that were bound to its success are settled
-- with discard_result, then the next waiting run becomes the head of the lane.
local function advance(lane, session, branch, status, discard_result, now)
  local place = session .. '/' .. branch
  local follow_ups = key('next', place)
  if status ~= 'completed' then
    for _, run_id in ipairs(redis.call('LRANGE', follow_ups, 0, -1)) do
      local run = read_run(run_id)
      if run and run.policy == 'discard' then
        redis.call('LREM', follow_ups, 1, run_id)
        settle_waiting(run_id, run, 'cancelled', 'superseded', discard_result, now)
      end
    end
  end
  redis.call('HDEL', lane.name, 'active', 'fence')
  while true do
    local next_id = redis.call('LPOP', follow_ups) or redis.call('LPOP', key('inbox', place))
    if not next_id then return end
    local run = read_run(next_id)
    if run then
      redis.call('HSET', lane.name, 'active', next_id)
      return enqueue(next_id, run, now)
    end
  end
end

local function end_active(lane, run_id, run, status, stop_reason, result, discard_result, now)
  redis.call('ZREM', key('q', run.queue), run_id)
  store_end(run_id, run, status, stop_reason, result, now)
  if run.started then
    redis.call('HSET', lane.name, 'last_run', run_id, 'last_stop', stop_reason)
  end
  advance(lane, run.session, run.branch, status, discard_result, now)
end

-- Ends a run that no worker holds, wherever it waits.
local function settle(lane, run_id, run, status, stop_reason, result, discard_result, now)
  if lane.active == run_id then
    add_control_record(run.session, 'run_finished', finished_body(run_id, run.branch, result), now)
    end_active(lane, run_id, run, status, stop_reason, result, discard_result, now)
    return
  end
  local place = run.session .. '/' .. run.branch
  redis.call('LREM', key('next', place), 1, run_id)
  redis.call('LREM', key('inbox', place), 1, run_id)
  settle_waiting(run_id, run, status, stop_reason, result, now)
end

-- How a run leaves its lane: its result is stored, and in the same step the next one is enqueued.

-- What is kept of a run is small: `end_id` is the record that holds its result. The hash is written
-- anew, since one that has held a long value (the job) takes three times the room for ever.
local function store_end(run_id, run, status, stop_reason, end_id, keep_ms, now)
  local name = key('run', run_id)
  redis.call('HDEL', name, 'state', 'job', 'worker', 'abort', 'cause', 'crashes_row', 'policy', 'inputs')
  local kept = redis.call('HGETALL', name)
  redis.call('DEL', name)
  redis.call('HSET', name, 'state', status, 'stop_reason', stop_reason, 'end', end_id, 'finished_ms', now,
    unpack(kept))
  redis.call('PEXPIRE', name, keep_ms)
  redis.call('HSET', key('s', run.session), 'ended_ms', now)
  redis.call('DEL', key('part', run_id), key('steer', run_id))
  mirror_result(run_id, run, status, stop_reason, now)
end

-- run_finished {run_id, branch_id, result}, built from a result that is encoded already.
local function finished_body(run_id, branch, result)
  return '\131' .. cmsgpack.pack('run_id') .. cmsgpack.pack(run_id) .. cmsgpack.pack('branch_id')
    .. cmsgpack.pack(branch) .. cmsgpack.pack('result') .. result
end

local function has_begun(run_id)
  return redis.call('HEXISTS', key('run', run_id), 'begin') == 1
end

-- What was said to a run, and comes too late for its model to hear it.
local function discard_inputs(run_id, run, chain, stop_reason, now)
  if not run.inputs then return end
  for _, input in ipairs(redis.call('LRANGE', key('steer', run_id), 0, -1)) do
    local input_id, content = string.match(input, '^(%S+) (.*)$')
    local body = cmsgpack.pack({ run_id = run_id, branch_id = run.branch, input_id = input_id,
      content = content, reason = stop_reason })
    add_own_record(run.session, chain, 'steering_discarded', body, now)
  end
end

-- A run that had begun ends on its branch: nobody holds the fence, so no writer is disturbed.
local function add_end(run_id, run, stop_reason, result, now)
  local chain = has_begun(run_id) and run.branch or '@control'
  discard_inputs(run_id, run, chain, stop_reason, now)
  return add_own_record(run.session, chain, 'run_finished', finished_body(run_id, run.branch, result), now)
end

local function settle_waiting(run_id, run, status, stop_reason, result, keep_ms, now)
  store_end(run_id, run, status, stop_reason, add_end(run_id, run, stop_reason, result, now), keep_ms, now)
end

-- After the active run ended as `status`: follow-ups that were bound to its success are settled
-- with discard_result, then the next waiting run becomes the head of the lane.
local function advance(lane, session, branch, status, discard_result, keep_ms, now)
  local place = session .. '/' .. branch
  local follow_ups = key('next', place)
  if status ~= 'completed' then
    for _, run_id in ipairs(redis.call('LRANGE', follow_ups, 0, -1)) do
      local run = read_run(run_id)
      if run and run.policy == 'discard' then
        redis.call('LREM', follow_ups, 1, run_id)
        settle_waiting(run_id, run, 'cancelled', 'superseded', discard_result, keep_ms, now)
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

local function end_active(lane, run_id, run, status, stop_reason, end_id, discard_result, keep_ms, now)
  redis.call('ZREM', key('q', run.queue), run_id)
  store_end(run_id, run, status, stop_reason, end_id, keep_ms, now)
  if has_begun(run_id) then
    redis.call('HSET', lane.name, 'last_run', run_id, 'last_stop', stop_reason)
  end
  advance(lane, run.session, run.branch, status, discard_result, keep_ms, now)
end

-- Ends a run that no worker holds, wherever it waits.
local function settle(lane, run_id, run, status, stop_reason, result, discard_result, keep_ms, now)
  if lane.active == run_id then
    local end_id = add_end(run_id, run, stop_reason, result, now)
    end_active(lane, run_id, run, status, stop_reason, end_id, discard_result, keep_ms, now)
    return
  end
  local place = run.session .. '/' .. run.branch
  redis.call('LREM', key('next', place), 1, run_id)
  redis.call('LREM', key('inbox', place), 1, run_id)
  settle_waiting(run_id, run, status, stop_reason, result, keep_ms, now)
end

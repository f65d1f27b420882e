-- The queue holds the head of each lane: score = when it is due. A leased run stays in it with
-- the end of its lease as the score, so that it becomes due by itself when its worker goes silent.
local WAKE_TOKENS_MAX = 64

-- A hold keeps a lane to itself and executes nothing. It lies in this queue while it is the head of
-- its lane: nobody claims it, and once it is due, its holder has gone silent and it is dropped.
local HOLDS = '@hold'
local HOLD_WAKE_MS = 60000

local function wake(queue, tokens)
  local list = key('wake', queue)
  for _ = 1, tokens do
    if redis.call('LLEN', list) < WAKE_TOKENS_MAX then redis.call('LPUSH', list, '1') end
  end
end

-- What stock arq tools read about a run that has not ended.
local function mirror_job(run_id, run)
  if redis.call('EXISTS', 'arq:job:' .. run_id) == 1 then return end
  redis.call('SET', 'arq:job:' .. run_id, cmsgpack.pack({ t = tonumber(run.attempt or '0'), f = 'run', a = {},
    k = { session_id = run.session, branch_id = run.branch, agent = run.agent }, et = tonumber(run.submitted) }))
end

local function mirror_result(run_id, run, status, stop_reason, now)
  redis.call('DEL', 'arq:job:' .. run_id, 'arq:in-progress:' .. run_id)
  redis.call('SET', 'arq:result:' .. run_id, cmsgpack.pack({ t = tonumber(run.attempt or '0'), f = 'run', a = {},
    k = { session_id = run.session, branch_id = run.branch, agent = run.agent }, et = tonumber(run.submitted),
    s = status == 'completed', r = status .. '/' .. stop_reason, st = tonumber(run.started or run.submitted),
    ft = now, q = key('q', run.queue), id = run_id }), 'PX', 3600000)
end

local function read_run(run_id)
  local f = redis.call('HMGET', key('run', run_id), 'session', 'branch', 'agent', 'queue', 'state', 'attempt',
    'submitted_ms', 'started_ms', 'policy', 'abort', 'worker', 'inputs')
  if not f[1] then return nil end
  return { session = f[1], branch = f[2], agent = f[3], queue = f[4], state = f[5], attempt = f[6],
    submitted = f[7], started = f[8], policy = f[9], abort = f[10] or nil, worker = f[11] or '', inputs = f[12] }
end

local function is_hold(run_id)
  return redis.call('HGET', key('run', run_id), 'queue') == HOLDS
end

-- Whoever waits for a lane listens to a list of its own.
local function wake_holder(run_id)
  local list = key('wake', HOLDS .. '/' .. run_id)
  redis.call('LPUSH', list, '1')
  redis.call('PEXPIRE', list, HOLD_WAKE_MS)
end

-- Offers the lane to its new head: to the workers of a queue, or to the holder that waits for it.
local function enqueue(run_id, run, score)
  redis.call('SADD', root .. ':queues', run.queue)
  if run.queue == HOLDS then
    redis.call('ZADD', key('q', HOLDS), score + redis.call('HGET', key('run', run_id), 'lease_ms'), run_id)
    return wake_holder(run_id)
  end
  redis.call('ZADD', key('q', run.queue), score, run_id)
  mirror_job(run_id, run)
  wake(run.queue, 1)
end

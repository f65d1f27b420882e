--[[ claim
Lease up to n due runs to a worker: each gets a new fence, its score becomes the end of the lease.

KEYS[1] root                partition; touches q, wake, run, lane, w, workers, dead, inbox, next

ARGV[1] worker
ARGV[2] request_id          the same request again returns the same runs
ARGV[3] nonce               random part of the fences
ARGV[4] lease_ms
ARGV[5] n                   free slots, at least 1
ARGV[6] crashes_max         without progress in between
ARGV[7] crashes_total_max
ARGV[8...] queue            what the worker serves, first served first

Returns {wait_ms, runs, exhausted}
  wait_ms    until the next run of these queues is due, and longer if a run was left to others; -1
             if there is none
  runs       {run_id, session, branch, fence, attempt, cause, job, queue} each; cause is "",
             "crash", "hand_back" or "stolen"
  exhausted  ids of runs over their crash limits: nobody holds them, they are to be settled

A worker holds at most one run on its last chance, which one more crash, in a row or in all, would
exhaust: a run that kills its workers takes no other along. A second one is put off for a moment,
which is no crash, so that another worker gets it, or this one when the first gets further.

Holds whose holder has gone silent are dropped here, so that their lanes go on.

A member of the queue that is no run of ours is dead-lettered with its reason. O(n) and O(queues).
]]
--- @include base
--- @include journal
--- @include queue
--- @include ending
--- @include hold
local PUT_OFF_MS = 250
local worker, nonce, lease_ms = ARGV[1], ARGV[3], tonumber(ARGV[4])
local now = now_ms()
local worker_key = key('w', worker)
local suspect = redis.call('HGET', worker_key, 'suspect')
local runs, exhausted, taken, put_off = {}, {}, {}, false

local function describe(run_id, fence, cause, run, job)
  runs[#runs + 1] = { run_id, run.session, run.branch, fence, tonumber(run.attempt), cause, job or '', run.queue }
end

local function dead_letter(queue, member, reason)
  redis.call('ZREM', key('q', queue), member)
  local name = key('dead', member)
  redis.call('HSET', name, 'reason', reason, 'queue', queue, 'at_ms', now)
  local payload = redis.pcall('GET', 'arq:job:' .. member)
  if type(payload) == 'string' then redis.call('HSET', name, 'payload', payload) end
  redis.call('DEL', 'arq:job:' .. member)
  redis.call('ZADD', root .. ':dead', now, member)
end

local function damage_of(run)
  if not run or not run.branch or not run.state or not run.queue then
    return 'the run hash is damaged: it names no lane, state or queue'
  end
  if not tonumber(run.attempt or 0) then return 'the run hash is damaged: its attempt is no number' end
  if redis.call('TYPE', key('lane', run.session .. '/' .. run.branch)).ok ~= 'hash' then
    return 'its lane is damaged or gone'
  end
end

-- How many crashes a run has left after `more` of them, and its counts then. At 0 it stays until it
-- is settled: it gets no further attempt when whoever was told of it dies before it settles it.
local function crashes_left(run_key, more)
  local crashes = redis.call('HMGET', run_key, 'crashes_row', 'crashes')
  local in_a_row, total = (tonumber(crashes[1]) or 0) + more, (tonumber(crashes[2]) or 0) + more
  return math.min(tonumber(ARGV[6]) - in_a_row, tonumber(ARGV[7]) - total), in_a_row, total
end

-- The last run that this worker took on its last chance may have ended, moved on or got further.
local function holds_suspect()
  return suspect and redis.pcall('HGET', key('run', suspect), 'worker') == worker
    and crashes_left(key('run', suspect), 0) == 1
end

local function take(queue, run_id)
  local run_key = key('run', run_id)
  if redis.call('TYPE', run_key).ok ~= 'hash' then
    return dead_letter(queue, run_id, 'no run has this id: it was not enqueued by runlane')
  end
  local run = read_run(run_id)
  local damage = damage_of(run)
  if damage then return dead_letter(queue, run_id, damage) end
  local lane, refused = read_lane(run.session, run.branch)
  if refused then
    redis.call('ZADD', key('q', queue), now + 1000, run_id)
    return
  end
  if lane.active ~= run_id or run.queue ~= queue then
    redis.call('ZREM', key('q', queue), run_id)
    return
  end
  local held = run.state == 'leased' or run.state == 'running'
  local cause = held and 'crash' or redis.call('HGET', run_key, 'cause') or ''
  local left, in_a_row, total = crashes_left(run_key, held and 1 or 0)
  local last_chance = left == 1 and total > 0 and not run.abort -- an aborted run is only ended
  if last_chance and holds_suspect() then
    redis.call('ZADD', key('q', queue), now + PUT_OFF_MS, run_id)
    put_off = true
    return
  end
  if held then redis.call('HSET', run_key, 'crashes_row', in_a_row, 'crashes', total) end
  if left <= 0 then
    redis.call('HSET', run_key, 'state', 'queued', 'worker', '')
    redis.call('HDEL', lane.name, 'fence')
    redis.call('ZADD', key('q', queue), now + lease_ms, run_id)
    exhausted[#exhausted + 1] = run_id
    return
  end
  run.attempt = redis.call('HINCRBY', run_key, 'attempt', 1)
  local fence = redis.call('HINCRBY', lane.name, 'fence_n', 1) .. ':' .. nonce
  redis.call('HSET', lane.name, 'fence', fence)
  redis.call('HSET', run_key, 'state', 'leased', 'worker', worker, 'cause', cause)
  redis.call('ZADD', key('q', queue), now + lease_ms, run_id)
  redis.call('SET', 'arq:in-progress:' .. run_id, fence, 'PX', lease_ms)
  mirror_job(run_id, run)
  if last_chance then suspect = run_id end
  taken[#taken + 1] = run_id
  describe(run_id, fence, cause, run, redis.call('HGET', run_key, 'job'))
end

local function wait_ms()
  local wait = -1
  for i = 8, #ARGV do
    local first = redis.call('ZRANGE', key('q', ARGV[i]), 0, 0, 'WITHSCORES')
    if first[2] then
      local ms = math.max(math.ceil(tonumber(first[2])) - now, 0)
      if wait < 0 or ms < wait then wait = ms end
    end
  end
  return wait
end

local last = redis.call('HMGET', worker_key, 'claim_id', 'claim_runs')
if last[1] == ARGV[2] then
  for run_id in string.gmatch(last[2] or '', '%S+') do
    local run = read_run(run_id)
    local lane = run and read_lane(run.session, run.branch)
    if lane and lane.active == run_id and string.match(lane.fence, ':(.*)$') == nonce then
      describe(run_id, lane.fence, redis.call('HGET', key('run', run_id), 'cause') or '', run,
        redis.call('HGET', key('run', run_id), 'job'))
    elseif lane and lane.active == run_id and lane.fence == '' and crashes_left(key('run', run_id), 0) <= 0 then
      exhausted[#exhausted + 1] = run_id
    end
  end
  return { wait_ms(), runs, exhausted }
end

drop_silent_holds(now)
local due = 0
for i = 8, #ARGV do due = due + redis.call('ZCOUNT', key('q', ARGV[i]), '-inf', now) end
local live = math.max(redis.call('ZCOUNT', root .. ':workers', now, '+inf'), 1)
local share = math.min(tonumber(ARGV[5]), math.max(math.ceil(due / live), 1))
for i = 8, #ARGV do
  if #taken < share then
    for _, run_id in ipairs(redis.call('ZRANGEBYSCORE', key('q', ARGV[i]), '-inf', now, 'LIMIT', 0, share - #taken)) do
      take(ARGV[i], run_id)
    end
  end
  if redis.call('ZCOUNT', key('q', ARGV[i]), '-inf', now) > 0 then wake(ARGV[i], 1) end
end
local named = table.concat(taken, ' ') .. ' ' .. table.concat(exhausted, ' ')
redis.call('HSET', worker_key, 'claim_id', ARGV[2], 'claim_runs', named, 'suspect', suspect or '')
keep_worker(worker, now, lease_ms)
return { math.max(wait_ms(), put_off and 2 * PUT_OFF_MS or -1), runs, exhausted }

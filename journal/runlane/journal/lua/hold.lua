--[[ hold
Enter a lane to keep it to oneself, take it once that is its turn, and keep it: the same request,
said again and again.

KEYS[1] root                partition; touches s, heads, lane, run, inbox, next, q, wake, log

ARGV[1] run_id              of the hold: UUID that the holder chose
ARGV[2] session
ARGV[3] branch
ARGV[4] holder              who asks, for people to read
ARGV[5] nonce               random part of the fence
ARGV[6] lease_ms            how long the holder may be silent
ARGV[7] fence               that it holds; "" while it waits

Returns {code, ...}
  OK              fence, head of the branch or "": the lane is held for another lease
  WAITING         run_id that is active in the lane, who holds that one or "", its intent
  FENCED          fence held now: the lane was taken away, or has gone on after a long silence
  UNKNOWN_SESSION 0
  UNKNOWN_BRANCH  names of the branches
  SESSION_CLOSED  why: deleting or importing
  NEWER_SCHEMA    schema of the lane

A hold waits in the inbox like a run, in the order of acceptance. The one that becomes the head of
its lane has a lease's time to take it; if it was silent for longer, it enters anew.
]]
--- @include base
--- @include journal
--- @include queue
--- @include ending
--- @include hold
local run_id, session, branch = ARGV[1], ARGV[2], ARGV[3]
local run_key, lease_ms = key('run', run_id), tonumber(ARGV[6])
local run = read_run(run_id)
local lane, refused = read_lane(session, branch)
if refused then return refused end
if ARGV[7] ~= '' and not holds(lane, run_id, ARGV[7]) then return { 'FENCED', lane.fence } end
local silent = run and run.state == 'failed'
if run and TERMINAL[run.state] and not silent then return { 'FENCED', lane.fence } end

local now = now_ms()
if not run or silent then
  refused = refuse_closed(session)
  if refused then return refused end
  if redis.call('EXISTS', key('s', session)) == 0 then return { 'UNKNOWN_SESSION', 0 } end
  if branch ~= 'main' and redis.call('HEXISTS', key('heads', session), branch) == 0 then
    local names = redis.call('HKEYS', key('heads', session))
    return { 'UNKNOWN_BRANCH', unpack(names, 1, math.min(#names, 100)) }
  end
  redis.call('DEL', run_key)
  redis.call('HSET', run_key, 'session', session, 'branch', branch, 'queue', HOLDS, 'intent', 'hold',
    'agent', redis.call('HGET', key('s', session), 'agent') or HOLDS, 'state', 'queued',
    'submitted_ms', now, 'lease_ms', lease_ms)
  if lane.active == '' then
    redis.call('HSET', lane.name, 'schema', LANE_SCHEMA, 'active', run_id)
    redis.call('SADD', root .. ':queues', HOLDS)
    lane.active = run_id
  else
    redis.call('RPUSH', key('inbox', session .. '/' .. branch), run_id)
  end
end
if lane.active ~= run_id then
  drop_silent_holds(now)
  lane = read_lane(session, branch)
end
if lane.active ~= run_id then
  return { 'WAITING', lane.active, unpack(active_run(lane)) }
end

local fence = lane.fence
if fence == '' then
  fence = redis.call('HINCRBY', lane.name, 'fence_n', 1) .. ':' .. ARGV[5]
  redis.call('HSET', lane.name, 'fence', fence)
  redis.call('HSET', run_key, 'state', 'running', 'worker', ARGV[4], 'started_ms', now)
end
redis.call('ZADD', key('q', HOLDS), now + lease_ms, run_id)
return { 'OK', fence, redis.call('HGET', key('heads', session), branch) or '' }

-- Names and time. KEYS[1] is the root of the partition, "<prefix>:{p0}": every key that a
-- script touches begins with it, so that all of them lie in one slot. The arq:* keys are the
-- exception: they mirror a run for stock arq tools, and are why a cluster cannot be served yet.
local root = KEYS[1]
local LANE_SCHEMA = 1
local TERMINAL = { completed = true, failed = true, cancelled = true, rejected = true }

local function key(kind, id)
  return root .. ':' .. kind .. ':' .. id
end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Fields of a lane that every guard needs; refuses a lane that a newer runlane has written.
local function read_lane(session, branch)
  local name = key('lane', session .. '/' .. branch)
  local fields = redis.call('HMGET', name, 'schema', 'active', 'fence')
  if tonumber(fields[1] or LANE_SCHEMA) > LANE_SCHEMA then
    return nil, { 'NEWER_SCHEMA', fields[1] }
  end
  return { name = name, active = fields[2] or '', fence = fields[3] or '' }, nil
end

-- What stands in the way of others: who holds the active run of a lane, and its intent.
local function active_run(lane)
  local fields = redis.call('HMGET', key('run', lane.active), 'worker', 'intent')
  return { fields[1] or '', fields[2] or '' }
end

-- A session that is being deleted or imported takes no new work.
local function refuse_closed(session)
  local state = redis.call('HGET', key('s', session), 'state')
  if state and state ~= '' then return { 'SESSION_CLOSED', state } end
end

-- A worker is live until its lease ends; what is known of it is kept a little longer.
local function keep_worker(worker, now, lease_ms)
  redis.call('ZADD', root .. ':workers', now + lease_ms, worker)
  redis.call('PEXPIRE', key('w', worker), 10 * lease_ms)
  redis.call('ZREMRANGEBYSCORE', root .. ':workers', '-inf', now - 10 * lease_ms)
end

local function holds(lane, run_id, fence)
  return fence ~= '' and lane.fence == fence and lane.active == run_id
end

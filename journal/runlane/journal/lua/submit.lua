--[[ submit
Accept a run into its lane, or refuse it and leave nothing behind.

KEYS[1] root                partition; touches run, lane, inbox, next, q, wake, s, heads, log, idem,
                            archive

ARGV[1] run_id              UUID that the producer chose; it is the request id too
ARGV[2] session
ARGV[3] branch
ARGV[4] agent
ARGV[5] queue
ARGV[6] intent              run | follow_up | continue
ARGV[7] job                 encoded job, kept with the run until it ends
ARGV[8] queued_body         encoded run_queued record
ARGV[9] idempotency_key     "" for none
ARGV[10] body_digest        what the key stands for
ARGV[11] idempotency_ms     how long the key is remembered
ARGV[12] failure_policy     of a follow-up: discard | continue
ARGV[13] continuable        stop reasons that a continue may follow, each between spaces
ARGV[14] cold_ms            how old the head of an idle lane is when it may go to the archive

Returns {code, ...}
  OK                   run_id, record id of run_queued
  EXISTS               run_id, record id of run_queued: this very request was accepted before
  IDEMPOTENCY_CONFLICT run_id that has the key with another body
  UNKNOWN_AGENT        names of the known agents
  UNKNOWN_BRANCH       names of the branches
  SESSION_CLOSED       why: deleting or importing
  AGENT_MISMATCH       the agent that the session is bound to
  AGENT_ACTIVE         run_id that is active (continue)
  NO_PREVIOUS_RUN      nothing to continue
  NOT_CONTINUABLE      stop reason of the last run, its run_id
  AGENT_IDLE           nothing is active that could be followed
  NEWER_SCHEMA         schema of the lane
]]
--- @include base
--- @include journal
--- @include queue
local run_id, session, branch, agent = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local intent, place = ARGV[6], ARGV[2] .. '/' .. ARGV[3]
local run_key = key('run', run_id)

local queued = redis.call('HGET', run_key, 'queued_id')
if queued then return { 'EXISTS', run_id, queued } end
local idem = ARGV[9] ~= '' and key('idem', session .. '/' .. ARGV[9])
if idem then
  local known, digest = string.match(redis.call('GET', idem) or '', '^(%S+) (%S+)$')
  if known and digest ~= ARGV[10] then return { 'IDEMPOTENCY_CONFLICT', known } end
  if known then return { 'EXISTS', known, redis.call('HGET', key('run', known), 'queued_id') or '' } end
end
local lane, refused = read_lane(session, branch)
refused = refused or refuse_closed(session)
if refused then return refused end
if branch ~= 'main' and redis.call('HEXISTS', key('heads', session), branch) == 0 then
  local names = redis.call('HKEYS', key('heads', session))
  return { 'UNKNOWN_BRANCH', unpack(names, 1, math.min(#names, 100)) }
end
if redis.call('HEXISTS', root .. ':agents', agent) == 0 then
  return { 'UNKNOWN_AGENT', unpack(redis.call('HKEYS', root .. ':agents')) }
end
local bound = redis.call('HGET', key('s', session), 'agent')
if bound and bound ~= agent then return { 'AGENT_MISMATCH', bound } end
if intent == 'follow_up' and (lane.active == '' or is_hold(lane.active)) then return { 'AGENT_IDLE' } end
if intent == 'continue' then
  if lane.active ~= '' then return { 'AGENT_ACTIVE', lane.active } end
  local last = redis.call('HMGET', lane.name, 'last_run', 'last_stop')
  if not last[1] then return { 'NO_PREVIOUS_RUN' } end
  if not string.find(ARGV[13], ' ' .. last[2] .. ' ', 1, true) then
    return { 'NOT_CONTINUABLE', last[2], last[1] }
  end
end

local now = now_ms()
queued = add_control_record(session, 'run_queued', ARGV[8], now)
local run = { session = session, branch = branch, agent = agent, queue = ARGV[5], submitted = now }
redis.call('HSET', run_key, 'session', session, 'branch', branch, 'agent', agent, 'queue', ARGV[5],
  'intent', intent, 'state', 'queued', 'job', ARGV[7], 'policy', ARGV[12], 'submitted_ms', now, 'queued_id', queued)
if idem then
  redis.call('SET', idem, run_id .. ' ' .. ARGV[10], 'PX', ARGV[11])
  redis.call('HSET', run_key, 'idem', ARGV[9])
end
if not bound then redis.call('HSET', key('s', session), 'agent', agent, 'created_ms', now) end
redis.call('ZADD', root .. ':sessions', now, session)
look_at(session, now + ARGV[14])
if lane.active == '' then
  redis.call('HSET', lane.name, 'schema', LANE_SCHEMA, 'active', run_id)
  enqueue(run_id, run, now)
else
  redis.call('RPUSH', key(intent == 'follow_up' and 'next' or 'inbox', place), run_id)
end
return { 'OK', run_id, queued }

-- ARGV: owner, lease ms, first lease ms, fenced 0|1, mode barge|respect|join, channel prefix, queue TTL ms, permits
-- (0 exclusive), of. Reply: {1, token or ''} granted; {0, ms until the first lease ends, queued 0|1} busy.
-- O(log n) in the waiters, and once for each hold that ended by itself and each waiter that gets its turn.
local owner, lease, first_lease, channels = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[6]
local permits, of = tonumber(ARGV[8]), tonumber(ARGV[9])
local at, time = names(1), now()
local me = ARGV[4] .. ':' .. first_lease .. ':' .. permits .. ':' .. of .. ':' .. owner
local state = state_of(at, time)
if state.err then return state end
if state.used > 0 and (state.shared and (permits == 0 or state.of ~= of) or state.holder and permits > 0) then
  settle(at, state)
  return redis.error_reply('WRONGTYPE another kind of lock')
end
local held = held_by(at, state, owner, permits)
local mine = held
if not held and not state.holder then
  local next = ARGV[5] == 'barge' or hand_over(at, state, channels, time, me)
  mine = next and fits(state, permits, of)
end
if mine then
  local token = ''
  if ARGV[4] == '1' then
    token = mint(at)
    if not token then
      settle(at, state)
      return redis.error_reply('WRONGTYPE the fence counter is not a number')
    end
  end
  if not held then
    enter(at, state, owner, permits, of, lease, time)
  elseif permits == 0 then
    -- A repeat never makes the owner's hold shorter.
    if redis.call('PTTL', at.lock) < lease then redis.call('PEXPIRE', at.lock, lease) end
  elseif tonumber(held) < time + lease * 1000 then
    leave(at, state, owner, permits)
    enter(at, state, owner, permits, of, lease, time)
  end
  if token ~= '' then keep_token(at, token) end
  redis.pcall('ZREM', at.queue, me)
  settle(at, state)
  return {1, token}
end
settle(at, state)
local queued = redis.call('ZSCORE', at.queue, me)
if ARGV[5] == 'join' then
  if not queued then
    local last = redis.call('ZRANGE', at.queue, -1, -1, 'WITHSCORES')[2] or '0'
    redis.call('ZADD', at.queue, last + 1, me)
    queued = true
  end
  redis.call('PEXPIRE', at.queue, ARGV[7])
end
local remaining
if state.shared and state.used > 0 then
  local first = redis.call('ZRANGEBYSCORE', at.lock, '(0', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  remaining = math.ceil((first[2] - time) / 1000)
else
  remaining = redis.call('PTTL', at.lock)
end
return {0, remaining, queued and 1 or 0}

-- ARGV: owner, lease ms, first lease ms, tokens to reserve, mode barge|respect|join, channel prefix, queue TTL ms, permits
-- (0 exclusive), of, owner of an exclusive hold that ends with this (or ''). Of an exclusive lock instead of which nothing
-- ends, without the last three. Reply: {1, token or ''} granted; {0, ms until the first lease ends, or 0 if others must have
-- their turn first and there are many of them, queued 0|1} busy.
-- O(log n) in the waiters, and once for each hold that ended by itself and each waiter that gets its turn.
local owner, lease, first_lease, channels = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[6]
local tokens, permits, of = tonumber(ARGV[4]), tonumber(ARGV[8] or 0), tonumber(ARGV[9] or 0)
local at, time = names(1), now()
local me = ARGV[4] .. ':' .. first_lease .. ':' .. permits .. ':' .. of .. ':' .. owner
local state = state_of(at, time)
if state.err then return state end
if (ARGV[10] or '') ~= '' and state.holder == ARGV[10] then leave(at, state, ARGV[10], 0) end

-- Whether the lock is something else than what the request is for. A semaphore that was resized still serves those who
-- stood in its queue before.
local function refuses()
  if other_kind(state, permits, of) then return true end
  if state.used == 0 or permits == 0 or state.of == of then return false end
  return permits > state.of or not redis.pcall('ZSCORE', at.queue, me)
end
local function conflict()
  settle(at, state)
  return redis.error_reply('WRONGTYPE another kind of lock')
end

local held, has = held_by(at, state, owner, permits)
local mine = held
if not held then
  if refuses() then return conflict() end
  if not state.holder then
    mine = ARGV[5] == 'barge' or hand_over(at, state, channels, time, me)
    -- By whom it is held now may have changed.
    if refuses() then return conflict() end
    mine = mine and fits(state, permits, of)
  end
end
if mine then
  local token = ''
  if tokens > 0 then
    token = mint(at, tokens)
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
    -- However much it asks for, it keeps what it has.
    leave(at, state, owner, has)
    enter(at, state, owner, has, state.of, lease, time)
  end
  if token ~= '' then keep_tokens(at, token, tokens) end
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
if state.rest then
  remaining = 0
elseif state.shared and state.used > 0 then
  local first = redis.call('ZRANGEBYSCORE', at.lock, '(0', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  remaining = math.ceil((first[2] - time) / 1000)
else
  remaining = redis.call('PTTL', at.lock)
end
return {0, remaining, queued and 1 or 0}

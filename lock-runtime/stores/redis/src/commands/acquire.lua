-- ARGV: lease ms, mode barge|respect|join, channel prefix, queue TTL ms, the rest of its place (see
-- lib.lua), owner, and optionally the owner of an exclusive hold that this request replaces.
-- Requests for several exclusive locks can be one call, if they differ in their places only. Then
-- the keys, and the place and owner, of each follow one another. The reply has an element for each:
-- the token or 1 if it was granted, as its lock was free and had no queue, or the busy reply if it
-- has got a place behind a holder. Otherwise it asks alone; it may have a place in a queue then.
-- Reply: {1, token or '', of, rest} granted; {0, ms until the first lease ends, queued 0|1, holder,
-- of} busy. The ms are 0 if others must have their turn first and there are many of them. `of` is
-- the limit that the present holders of permits use, if it differs from the request's. `rest` is 2
-- if more waiters can have their turn now. An exclusive lock that was free and had no queue may
-- also be granted by the token alone, or by 1 without one.
-- O(log n) in the waiters, and once for each hold that expired and each waiter that gets its turn.
lease = tonumber(lease)
local channels, instead_of = ARGV[3], ARGV[7]
local me = owner .. ':' .. rest
local place = parse(me)
local permits, of, tokens = place.permits, place.of, place.tokens
local at, time = names(1), now()
local state = state_of(at, time)
if state.err then return state end
if instead_of and state.holder == instead_of then leave(at, state, instead_of, 0) end
local since = mode == 'join' and hear(at, me, place.client, ttl, time)

local function conflict()
  settle(at, state)
  return redis.error_reply('WRONGTYPE another kind of lock')
end

local held, part = has(at, state, owner, permits)
local mine, denied = held, nil
local others = state.shared and state.used > 0 and state.of ~= of and state.of or nil
if not held then
  if is_other_kind(state, permits, of) then return conflict() end
  if not state.holder then
    mine = true
    if mode ~= 'barge' then mine, denied = hand_over(at, state, channels, time, me) end
    if denied then
      settle(at, state)
      return denied
    end
    -- The hand-over may have changed the holder.
    if is_other_kind(state, permits, of) then return conflict() end
    mine = mine and fits(state, permits, of)
  end
end
if mine then
  local token = ''
  if tokens > 0 then
    token = mint(at, tokens)
    if not token then
      settle(at, state)
      return wrong_counter(at)
    end
  end
  if not held then
    enter(at, state, owner, permits, of, lease, time)
  elseif permits == 0 then
    -- A repeated request never shortens the owner's hold.
    if redis.call('PTTL', at.lock) < lease then redis.call('PEXPIRE', at.lock, lease) end
  elseif tonumber(held) < time + lease * 1000 then
    -- The owner keeps the permits that it has, whatever it asks for.
    leave(at, state, owner, part)
    enter(at, state, owner, part, state.of, lease, time)
  end
  if token ~= '' then keep_tokens(at, token, tokens) end
  -- A hand-over stopped here: those behind may have their turn too.
  if redis.pcall('ZREM', at.queue, me) == 1 then
    tidy(at)
    hand_over(at, state, channels, time)
  end
  settle(at, state)
  return {1, token, others or false, state.rest}
end
settle(at, state)
local queued = since or redis.call('ZSCORE', at.queue, me)
if mode == 'join' and not queued then
  redis.call('ZADD', at.queue, string.format('%.0f', time), me)
  redis.call('PEXPIRE', at.queue, ttl)
  queued = true
  if was_suspended(at, place.client) then hear(at, me, place.client, ttl, time) end
end
local remaining, holder
if state.rest then
  remaining = 0
elseif state.shared and state.used > 0 then
  local first = redis.call('ZRANGEBYSCORE', at.lock, '(0', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  holder, remaining = first[1], math.ceil((first[2] - time) / 1000)
else
  holder, remaining = state.holder, redis.call('PTTL', at.lock)
end
return {0, remaining, queued and 1 or 0, shown(holder or ''), others}

-- Shared by the scripts that grant. KEYS: three for each lock, in this order: lock, queue, fence counter.
--
-- An exclusive lock is a string, the owner. A lock that is held in shares is a sorted set: `<owner>:<permits>` by the
-- end of its lease in microseconds, and below zero `of` (how many permits there are) and `used`.

-- So much longer than its leases lives a sorted set, so that the leases decide.
local SLACK = 1000

local function names(i)
  return {lock = KEYS[3 * i - 2], queue = KEYS[3 * i - 1], fence = KEYS[3 * i]}
end

-- A place in the queue: `<tokens, 0 unfenced>:<first lease ms>:<permits, 0 exclusive>:<of>:<owner>`.
local function parse(member)
  local tokens, first_lease, permits, of, owner, client =
    string.match(member, '^(%d+):(%d+):(%d+):(%d+):((%x+)%-%x+)$')
  if not owner then return nil end
  return {
    tokens = tonumber(tokens), first_lease = tonumber(first_lease),
    permits = tonumber(permits), of = tonumber(of), owner = owner, client = client,
  }
end

-- What of a lock is taken: nothing, all of it by an exclusive holder, or some permits. Holds in shares whose lease has
-- ended are taken out, each once.
local function state_of(at, time)
  local holder = redis.pcall('GET', at.lock)
  if not holder then return {used = 0} end
  if type(holder) == 'string' then return {used = 1, holder = holder} end
  local used, of = redis.pcall('ZSCORE', at.lock, 'used'), redis.pcall('ZSCORE', at.lock, 'of')
  if type(used) ~= 'string' or type(of) ~= 'string' then return redis.error_reply('WRONGTYPE not a lock') end
  local state = {used = -used, of = -of, shared = true}
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', at.lock, '(0', time)) do
    redis.call('ZREM', at.lock, member)
    state.used = state.used - string.match(member, ':(%d+)$')
    state.changed = true
  end
  return state
end

-- Writes down how much is taken, if it has changed.
local function settle(at, state)
  if not state.changed then return end
  if state.used > 0 then
    redis.call('ZADD', at.lock, -state.used, 'used')
  else
    redis.call('DEL', at.lock)
  end
end

-- How many permits a read-write lock has, all of which a writer takes.
local WRITE = 2147483647

-- Whether a held lock is another kind than a request is for: exclusive, read-write or a semaphore.
local function other_kind(state, permits, of)
  if state.used == 0 then return false end
  if state.holder or permits == 0 then return not state.holder or permits > 0 end
  return (state.of == WRITE) ~= (of == WRITE)
end

-- Whether there is enough left.
local function fits(state, permits, of)
  if state.used == 0 then return true end
  return not state.holder and not other_kind(state, permits, of) and state.used + permits <= state.of
end

-- Writes a hold down.
local function enter(at, state, owner, permits, of, lease, time)
  if permits == 0 then
    redis.call('SET', at.lock, owner, 'PX', lease)
    state.used, state.holder, state.shared, state.changed = 1, owner, false, false
    return
  end
  -- A set that emptied out may be of another count.
  if state.used > 0 then of = state.of end
  state.used, state.of, state.shared, state.changed = state.used + permits, of, true, false
  redis.call('ZADD', at.lock, string.format('%.0f', time + lease * 1000), owner .. ':' .. permits,
    -of, 'of', -state.used, 'used')
  if redis.call('PTTL', at.lock) < lease + SLACK then redis.call('PEXPIRE', at.lock, lease + SLACK) end
end

-- What the owner has of the lock: when that ends (a string, true for an exclusive lock), and how many permits it is. A
-- downgrade may be carried out before or after a command that was sent around the same time, so a reader may be found as
-- the writer that it was, and a writer as the reader that it is.
local function held_by(at, state, owner, permits)
  if permits == 0 then return state.holder == owner, 0 end
  if not state.shared then return false, permits end
  local ends = redis.call('ZSCORE', at.lock, owner .. ':' .. permits)
  if ends then return ends, permits end
  local other = permits == 1 and WRITE or permits == WRITE and 1
  return other and redis.call('ZSCORE', at.lock, owner .. ':' .. other), other
end

-- Takes a hold out again.
local function leave(at, state, owner, permits)
  if permits == 0 then
    redis.call('DEL', at.lock)
    state.used, state.holder = 0, nil
  else
    redis.call('ZREM', at.lock, owner .. ':' .. permits)
    state.used, state.changed = state.used - permits, true
  end
end

-- Gives the lock, or a share of it, to one waiter, if its client still listens.
local function grant(at, state, place, channels, time)
  local token = ''
  if place.tokens > 0 then
    token = mint(at, place.tokens)
    if not token then return end
  end
  enter(at, state, place.owner, place.permits, place.of, place.first_lease, time)
  if token ~= '' then keep_tokens(at, token, place.tokens) end
  -- An error (no permission for the channel) is not "nobody listens": the waiter finds its grant when it looks again.
  local heard = redis.pcall('PUBLISH', channels .. place.client, place.owner .. ' ' .. token)
  if heard == 0 then leave(at, state, place.owner, place.permits) end
end

-- Whether a waiter's client still listens.
local function listens(place, channels)
  local reply = redis.pcall('PUBSUB', 'NUMSUB', channels .. place.client)
  return reply.err or reply[2] ~= 0
end

-- A script gives so many waiters their turn at most, since all others wait for its end. If there are more, `state.rest` is
-- 2, which goes into the reply, and the client that sent it has the rest served by another script.
local PORTION, served = 500, 0

-- Gives what is free to those who are first in the queue, as long as it is enough for the next. O(1) for each of them.
-- Stops in front of `me`, if given, and returns true then, or at the end of the queue.
local function hand_over(at, state, channels, time, me)
  while true do
    local first = redis.pcall('ZRANGE', at.queue, '0', '0')
    if first.err or not first[1] or first[1] == me then return true end
    local place = parse(first[1])
    if place and not fits(state, place.permits, place.of) then
      if state.holder then return false end
      -- Who waits for another kind of lock, or for more than there is, learns of it when it looks again; and a free share
      -- in front of which nobody waits any more must not stay free.
      local waits = not other_kind(state, place.permits, place.of) and place.permits <= state.of
      if waits and listens(place, channels) then return false end
      place = nil
    end
    if served == PORTION then
      state.rest = 2
      return false
    end
    served = served + 1
    redis.call('ZREM', at.queue, first[1])
    if place then grant(at, state, place, channels, time) end
  end
end

-- Shared by the scripts that grant: the rules of lock_store::rules, whose parts have the same names
-- here: first the queue's places (`queue.rs` there), then what is held (`holders.rs`), then the
-- hand-over (`lock.rs`). Before it stand `denied.lua` (what was refused), `tokens.lua` (the time,
-- fencing tokens) and `version.lua` (what can't be read); behind it, the file of the command. KEYS:
-- three for each lock, in this order: lock, queue, fence counter.
--
-- An exclusive lock is a string: the owner. A lock that is held in shares is a sorted set. It has
-- `<owner>:<permits>` for each hold, scored with the end of its lease in microseconds. Scored below
-- zero, it also has `used` and `of`, the limit of the last request that was granted.

-- A sorted set outlives its leases by this many ms, so that the leases decide.
local SLACK = 1000

local function names(i)
  return {lock = KEYS[3 * i - 2], queue = KEYS[3 * i - 1], fence = KEYS[3 * i]}
end

-- The queue is a sorted set of three parts, scored with the server's time in microseconds:
-- - Places, with the time since when each waits.
-- - From SUSPENDED on: the same for places of clients that stand still.
-- - From HEARD on: clients, with the time when each was last heard. If places of a client were
--   suspended, that time instead, in milliseconds.
--
-- A client is heard when it takes a place, and when one of its requests that has a place asks
-- again. A waiting request asks each second. Times fit below SUSPENDED until 2065.
local SUSPENDED, HEARD = 3000000000000000, 6000000000000000
-- A client that was not heard for this long (µs) counts as standing still. A grant that nobody
-- picks up costs as much.
local UNHEARD = 2000000
-- Places that were suspended are kept for this many ms, as long as a queue that nobody uses.
local KEPT = 60000

-- A place: `<owner>:<first lease ms>:<wait ms, 0 without end>[:<tokens>[:<permits>:<of>]]`. Its
-- client can write the same text again.
local function parse(member)
  local owner, client, first_lease, wait, more =
    string.match(member, '^((%x+)%-%x+):([1-9]%d*):(%d+)(.*)$')
  if not owner then return nil end
  local tokens, shares = string.match(more, '^:(%d+)(.*)$')
  local permits, of = string.match(shares or '', '^:(%d+):(%d+)$')
  -- A part that is not known may mean anything.
  if not permits and (shares or more) ~= '' then return nil end
  return {
    owner = owner, client = client,
    first_lease = tonumber(first_lease), wait = tonumber(wait) * 1000,
    tokens = tonumber(tokens or 0), permits = tonumber(permits or 0), of = tonumber(of or 0),
  }
end

local function stamp(at, member, time)
  redis.call('ZADD', at.queue, string.format('%.0f', time), member)
end

-- When places of a client were suspended (ms), if it was not heard since then.
local function was_suspended(at, client)
  local heard = redis.call('ZSCORE', at.queue, client)
  heard = heard and heard - HEARD
  return heard and heard < HEARD / 60 and heard
end

-- Forgets a place that was suspended and not asked for again, and a client that was not heard for
-- as long. Each call forgets at most the first of each.
local function forget_one(at, time)
  local first = redis.call('ZRANGEBYSCORE', at.queue, SUSPENDED, '(' .. HEARD, 'LIMIT', 0, 1)[1]
  local place = first and parse(first)
  local suspended = place and was_suspended(at, place.client)
  if first and time / 1000 - (suspended or 0) > KEPT then redis.call('ZREM', at.queue, first) end
  local from, before = HEARD + HEARD / 60, HEARD + time - KEPT * 1000
  -- Clients keep the time of the suspension as long as there are such places.
  if not first then from = HEARD end
  local client = redis.call('ZRANGEBYSCORE', at.queue, from, before, 'LIMIT', 0, 1)[1]
  local since = client and was_suspended(at, client)
  if client and (not since or time / 1000 - since > KEPT) then
    redis.call('ZREM', at.queue, client)
  end
end

-- A request that has a place asks again: its client runs, and gets back its suspended places.
-- Returns since when `me` waits, or nil without a place. Needs no free memory: PEXPIRE needs
-- none, and after a script's first write neither does ZADD.
local function hear(at, me, client, ttl, time)
  local since = redis.pcall('ZSCORE', at.queue, me)
  if type(since) ~= 'string' then return nil end
  redis.call('PEXPIRE', at.queue, ttl)
  if was_suspended(at, client) then
    local suspended =
      redis.call('ZRANGEBYSCORE', at.queue, SUSPENDED, '(' .. HEARD, 'WITHSCORES')
    for i = 1, #suspended, 2 do
      local member = suspended[i]
      if string.sub(member, 1, #client) == client then
        stamp(at, member, suspended[i + 1] - SUSPENDED)
      end
    end
  end
  stamp(at, client, HEARD + time)
  forget_one(at, time)
  return since
end

-- Deletes the records of clients when no place is left.
local function tidy(at)
  local first = redis.pcall('ZRANGE', at.queue, '0', '0', 'WITHSCORES')
  if not first.err and first[1] and tonumber(first[2]) >= HEARD then redis.call('DEL', at.queue) end
end

-- The error for a key that holds no lock of version 1, by the reply to its `GET`; or the error of
-- what was denied.
local function not_a_lock(at, holder)
  if is_denied(holder) then return holder end
  local version = redis.pcall('ZSCORE', at.lock, 'version')
  if is_denied(version) then return version end
  return unreadable(type(version) == 'string' and 'v' .. version .. ':', 'not a lock')
end

local function wrong_counter(at)
  local counter = redis.pcall('GET', at.fence)
  if is_denied(counter) then return counter end
  return unreadable(counter, 'the fence counter is not a number')
end

-- What is taken of a lock: nothing, all of it by an exclusive holder, or some permits. Removes
-- expired shares, each once.
local function state_of(at, time)
  local holder = redis.pcall('GET', at.lock)
  if not holder then return {used = 0} end
  if type(holder) == 'string' then return {used = 1, holder = holder} end
  local used, of = redis.pcall('ZSCORE', at.lock, 'used'), redis.pcall('ZSCORE', at.lock, 'of')
  if type(used) ~= 'string' or type(of) ~= 'string' then return not_a_lock(at, holder) end
  local state = {used = -used, of = -of, shared = true}
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', at.lock, '(0', time)) do
    redis.call('ZREM', at.lock, member)
    state.used = state.used - string.match(member, ':(%d+)$')
    state.changed = true
  end
  return state
end

-- Writes how much is taken, if that has changed.
local function settle(at, state)
  if not state.changed then return end
  if state.used > 0 then
    redis.call('ZADD', at.lock, -state.used, 'used', -state.of, 'of')
  else
    redis.call('DEL', at.lock)
  end
end

-- A value as replies tell it. Anybody may have written it, and a reply of many megabytes would end
-- the connection. Those of this library are shorter.
local function shown(value)
  return string.sub(value, 1, 128)
end

-- The number of permits of a read-write lock. A writer takes them all.
local WRITE = 2147483647

-- True if the lock is held as another kind than requested: exclusive, read-write or semaphore.
local function is_other_kind(state, permits, of)
  if state.used == 0 then return false end
  if state.holder or permits == 0 then return not state.holder or permits > 0 end
  return (state.of == WRITE) ~= (of == WRITE)
end

-- True if enough permits are left. The limit is the request's own: two versions of a service may
-- use different limits for a while.
local function fits(state, permits, of)
  if state.used == 0 then return true end
  return not state.holder and not is_other_kind(state, permits, of) and state.used + permits <= of
end

-- Writes a hold.
local function enter(at, state, owner, permits, of, lease, time)
  if permits == 0 then
    redis.call('SET', at.lock, owner, 'PX', lease)
    state.used, state.holder, state.shared, state.changed = 1, owner, false, false
    return
  end
  state.used, state.of, state.shared, state.changed = state.used + permits, of, true, false
  redis.call('ZADD', at.lock, string.format('%.0f', time + lease * 1000), owner .. ':' .. permits,
    -of, 'of', -state.used, 'used')
  if redis.call('PTTL', at.lock) < lease + SLACK then
    redis.call('PEXPIRE', at.lock, lease + SLACK)
  end
end

-- The owner's hold: the end of its lease (a string; true for an exclusive lock), and its permits. A
-- downgrade may run before or after a command that was sent around the same time. So a reader may
-- still be stored as a writer, and a writer already as a reader.
local function has(at, state, owner, permits)
  if permits == 0 then return state.holder == owner, 0 end
  if not state.shared then return false, permits end
  local ends = redis.call('ZSCORE', at.lock, owner .. ':' .. permits)
  if ends then return ends, permits end
  local other = permits == 1 and WRITE or permits == WRITE and 1
  return other and redis.call('ZSCORE', at.lock, owner .. ':' .. other), other
end

-- Removes a hold.
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
  local token, of = '', state.of
  if place.tokens > 0 then
    token = mint(at, place.tokens)
    if not token then return end
  end
  enter(at, state, place.owner, place.permits, place.of, place.first_lease, time)
  if token ~= '' then keep_tokens(at, token, place.tokens) end
  -- An error (no permission for the channel) is not "nobody listens": the waiter finds its grant
  -- when it asks again.
  local granted = '1 granted ' .. place.owner .. ' ' .. token
  local heard = redis.pcall('PUBLISH', channels .. place.client, granted)
  if heard == 0 then
    leave(at, state, place.owner, place.permits)
    state.of = of
  end
end

-- True if a waiter's client still listens.
local function listens(place, channels)
  local reply = redis.pcall('PUBSUB', 'NUMSUB', channels .. place.client)
  return reply.err or reply[2] ~= 0
end

-- A script serves at most this many places, since all other clients wait for its end. If more are
-- left, `state.rest` is 2. The reply has it, and the client that sent the script lets another
-- script serve the rest.
local PORTION, served = 500, 0

-- True if the client of a place was not heard for long. The server's clock may have been set back:
-- a time ahead of it is set to now, unless memory is full.
local function stands_still(at, place, member, since, time)
  if since > time then
    pcall(stamp, at, member, time)
    return false
  end
  if time - since <= UNHEARD then return false end
  if was_suspended(at, place.client) then return true end
  local heard = (redis.call('ZSCORE', at.queue, place.client) or HEARD) - HEARD
  if heard > time then
    pcall(stamp, at, place.client, HEARD + time)
    return false
  end
  return time - heard > UNHEARD
end

-- What becomes of the first place. It is 'served', 'blocks' the places behind it until more is
-- free, is 'suspended' until its client is heard, or has 'ended'.
local function turn_of(at, state, place, member, since, channels, time)
  if not place or place.wait > 0 and time > since + place.wait then return 'ended' end
  if stands_still(at, place, member, since, time) then
    return listens(place, channels) and 'suspended' or 'ended'
  end
  if fits(state, place.permits, place.of) then return 'served' end
  -- A request for another kind of lock learns of it when it asks again. If the client no longer
  -- listens, its place must not keep a share free.
  if is_other_kind(state, place.permits, place.of) or not listens(place, channels) then
    return 'ended'
  end
  return 'blocks'
end

-- Gives what is free to the first places in the queue, as long as it is enough for the next one.
-- O(1) for each place. Stops at `me`, if given. Returns true there and at the end of the queue; and
-- false and the error if it may not read the queue.
local function hand_over(at, state, channels, time, me)
  while not state.holder do
    local first = redis.pcall('ZRANGE', at.queue, '0', '0', 'WITHSCORES')
    if is_denied(first) then return false, first end
    local member, since = first[1], tonumber(first[2])
    if first.err or not member then return true end
    if since >= SUSPENDED then
      forget_one(at, time)
      tidy(at)
      return true
    end
    if member == me then return true end
    local place = parse(member)
    local turn = turn_of(at, state, place, member, since, channels, time)
    if turn == 'blocks' then return false end
    if served == PORTION then
      state.rest = 2
      return false
    end
    served = served + 1
    if turn == 'suspended' then
      -- Needs no free memory, as in `hear`. The queue is never empty here, or it would have no end.
      redis.call('PEXPIRE', at.queue, KEPT)
      stamp(at, member, since + SUSPENDED)
      stamp(at, place.client, HEARD + math.floor(time / 1000))
    else
      redis.call('ZREM', at.queue, member)
      if turn == 'served' then grant(at, state, place, channels, time) end
    end
  end
  return false
end

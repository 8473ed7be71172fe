-- What the scripts for locks as Redisson keeps them have in common.
--
-- A lock is a hash whose TTL is the lease. The field of a holder is its client and its thread,
-- `UUID:thread`. Its value counts how often that one holds it. A thread whose number begins with 0
-- is a request of lock-runtime, which holds once, however often its command is repeated.
local ZERO = '%x%x%x%x'
local HOLDER = '^' .. ZERO .. ZERO .. '%-' .. ZERO .. '%-' .. ZERO .. '%-' .. ZERO .. '%-'
  .. ZERO .. ZERO .. ZERO .. ':.'

local function is_holder(field) return #field <= 128 and string.find(field, HOLDER) ~= nil end

-- How often a holder holds it. Another version may write something else.
local function is_count(holds) return string.find(holds, '^%d+$') ~= nil end

local function conflict(what) return redis.error_reply('WRONGTYPE ' .. what) end

-- The holder of an exclusive lock, false if it is free; or nil and an error if it is none.
local function holder_of(lock)
  local fields = redis.pcall('HLEN', lock)
  if type(fields) == 'table' then return nil, fields end
  if fields == 0 then return false end
  local only = fields == 1 and redis.call('HGETALL', lock)
  if only and is_holder(only[1]) and is_count(only[2]) then return only[1] end
  return nil, conflict('a hash, but no RLock')
end

-- The mode of a read-write lock and some of its fields, or nil, and perhaps an error, if it is
-- none: each field but `mode` is of a holder. It looks at no more than a page, since the hash of
-- an application may be large.
local function read_write_mode(lock)
  local mode = redis.pcall('HGET', lock, 'mode')
  if is_denied(mode) then return nil, mode end
  if mode ~= 'read' and mode ~= 'write' then return nil end
  local page = redis.call('HSCAN', lock, 0)[2]
  for at = 1, #page, 2 do
    local is_one = is_holder(page[at]) and is_count(page[at + 1])
    if page[at] ~= 'mode' and not is_one then return nil end
  end
  return mode, page
end

-- The rest of a reader's lease: each of its holds has a key. The first thousand count. Redisson
-- 3.5 puts the lock's name before it without braces. Who counts otherwise, or whose key this user
-- may not read, may read on.
local function reader_lasts(lock, stem, reader, holds)
  if not is_count(holds) then return redis.call('PTTL', lock) end
  local longest = -2
  for _, before in ipairs({stem, lock}) do
    for hold = 1, longest == -2 and math.min(tonumber(holds), 1000) or 0 do
      local its = before .. ':' .. reader .. ':rwlock_timeout:' .. hold
      local lasts = redis.pcall('PTTL', its)
      -- The name of 3.5 may be another node's in a cluster.
      if before == stem and is_denied(lasts) then return redis.call('PTTL', lock) end
      longest = math.max(longest, type(lasts) == 'number' and lasts or -2)
    end
  end
  return longest
end

-- How many heard it. Without the right to publish, nobody does.
local function publish(channel, message)
  local told = redis.pcall('PUBLISH', channel, message)
  return type(told) == 'number' and told or 0
end

-- Permits end by the clocks of Java clients, which may be this many ms ahead.
local AHEAD = 1000

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The first in the queue of a fair lock whose time is not over. Those before it leave the queue. An
-- error behind it says that it may not be read.
local function first_in_queue(queue, timeouts, time)
  while true do
    local first = redis.pcall('LINDEX', queue, 0)
    if is_denied(first) then return nil, first end
    if type(first) ~= 'string' then return nil end
    local ends = redis.pcall('ZSCORE', timeouts, first)
    if is_denied(ends) then return nil, ends end
    if type(ends) ~= 'string' or tonumber(ends) > time then return first end
    redis.call('LPOP', queue)
    redis.call('ZREM', timeouts, first)
  end
end

-- Tells the first of a fair queue that its lock is free. How many heard it.
local function tell_first(channel, queue, timeouts)
  local first = first_in_queue(queue, timeouts, now())
  return first and publish(channel .. ':' .. first, '0') or 0
end

-- Tells that a lock is free: everybody who waits for it, and the first of its fair queue. How many
-- heard it.
local function tell_free(channel, queue, timeouts)
  local told = publish(channel, '0')
  if redis.call('EXISTS', queue) == 0 then return told end
  return told + tell_first(channel, queue, timeouts)
end

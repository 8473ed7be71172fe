-- Shared by the scripts of latches. All are O(1) unless they say otherwise.
-- KEYS: latch, its waiters, what this call did.
-- A latch is a hash, which no script takes for a lock. `count` is how many count-downs are left.
-- `generation` is above that of every earlier latch of this key. `opened` is the last earlier
-- generation that opened. Waiters are owner tokens, each scored with the time in ms at which it
-- expires.

local NOT_A_LATCH = 'the key holds something that is not a latch'

local function conflict()
  return redis.error_reply('WRONGTYPE ' .. NOT_A_LATCH)
end

-- The negated server time in µs, if it is outside the call's period of validity; else nil.
local function untimely(from, to)
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  if now < tonumber(from) or now > tonumber(to) then return -now end
end

-- The latch; nil if it is not set; an error if the key is something else.
local function read()
  local found = redis.call('HMGET', KEYS[1], 'count', 'generation', 'opened', 'version')
  local pttl = redis.call('PTTL', KEYS[1])
  if pttl == -2 then return nil end
  if found[4] and found[2] then return nil, unreadable('v' .. found[4] .. ':', NOT_A_LATCH) end
  -- A longer one is no number of ours, and would make a reply of many megabytes.
  local function number(text)
    return text and #text < 32 and string.match(text, '^%d+$') and tonumber(text)
  end
  local count, generation = number(found[1]), number(found[2])
  if not count or not generation or not number(found[3]) then return nil, conflict() end
  return {count = count, generation = generation, text = found[2], opened = found[3], pttl = pttl}
end

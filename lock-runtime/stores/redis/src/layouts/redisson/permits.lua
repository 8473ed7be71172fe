-- Takes permits as RPermitExpirableSemaphore keeps them: a number of free ones, and the taken ones,
-- each with the time of its end.
-- KEYS: free permits, taken ones. ARGV: lease ms, channel, the ids to take.
-- Reply: {1, all permits}; {0, ms to the next end or -1, all permits}; {2} without a number.
local key, taken, lease = KEYS[1], KEYS[2], tonumber(ARGV[1])
local free = redis.pcall('GET', key)
if type(free) == 'table' then return free end
local size = redis.pcall('ZCARD', taken)
if type(size) == 'table' then return size end
if not free then return {2} end
if not string.find(free, '^%-?%d+$') then return conflict('no number of permits') end
free = tonumber(free)
local time = now()
local over = redis.call('ZRANGEBYSCORE', taken, '-inf', time, 'LIMIT', 0, 100)
-- Without the right to `INCRBY`, this ends before anything is given back.
if #over > 0 then redis.call('INCRBY', key, 0) end
local mine, ended = {}, 0
for at = 3, #ARGV do
  local ends = redis.call('ZSCORE', taken, ARGV[at])
  if ends and tonumber(ends) > time then
    mine[at] = ends
  elseif ends then
    ended = ended + redis.call('ZREM', taken, ARGV[at])
  end
end
for _, id in ipairs(over) do
  ended = ended + redis.call('ZREM', taken, id)
end
if ended > 0 then
  free = redis.call('INCRBY', key, ended)
  publish(ARGV[2], free)
end
local all, missing = free + size - ended, 0
for at = 3, #ARGV do missing = missing + (mine[at] and 0 or 1) end
if missing > free then
  local next = redis.call('ZRANGE', taken, 0, 0, 'WITHSCORES')[2]
  -- A permit without an end has one in 30,000 years.
  local rest = next and tonumber(next) < 900000000000000 and tonumber(next) - time or -1
  return {0, rest, all}
end
-- Without the right to `DECRBY`, this ends before anything is taken.
if missing > 0 then redis.call('DECRBY', key, missing) end
for at = 3, #ARGV do
  local ends = math.max(tonumber(mine[at] or 0), time + lease + AHEAD)
  redis.call('ZADD', taken, string.format('%.0f', ends), ARGV[at])
end
local lasts = redis.call('PTTL', key)
if lasts > 0 then redis.call('PEXPIRE', taken, lasts) end
return {1, all}

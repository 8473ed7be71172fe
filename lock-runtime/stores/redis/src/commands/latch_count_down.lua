-- ARGV: start and end of the call's validity, ms for which the call is remembered, channel prefix.
-- Reply: how many count-downs are left; -1 if the latch is not set; below -1, the call is untimely.
-- The call that opens the latch is O(waiters). Each process has one waiter.
local before = redis.call('GET', KEYS[3])
if before then return tonumber(before) end
local refused = untimely(ARGV[1], ARGV[2])
if refused then return refused end
local latch, wrong = read()
if wrong then return wrong end
if not latch then return -1 end
if latch.count == 0 then return 0 end
local left = latch.count - 1
-- DEL of a missing key needs no free memory. After this first write, neither do the other commands.
-- So the latch opens for its waiters also when memory is full.
redis.call('DEL', KEYS[3])
redis.call('SET', KEYS[3], left, 'PX', ARGV[3])
redis.call('HSET', KEYS[1], 'count', left)
if left > 0 then return left end
local time = redis.call('TIME')
local millis = time[1] * 1000 + math.floor(time[2] / 1000)
redis.pcall('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', millis))
local waiters = redis.pcall('ZRANGE', KEYS[2], 0, -1)
if waiters.err then return 0 end
redis.pcall('DEL', KEYS[2])
for _, owner in ipairs(waiters) do
  local client = string.match(owner, '^(%x+)%-%x+$')
  -- Without permission for the channel, waiters find the latch open when they look again.
  if client then
    redis.pcall('PUBLISH', ARGV[4] .. client, '1 opened ' .. owner .. ' ' .. latch.text)
  end
end
return 0

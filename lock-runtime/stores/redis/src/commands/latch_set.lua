-- ARGV: start and end of the call's validity, ms for which the call is remembered, count, TTL ms.
-- Reply: 1 set by this call, 0 set by another; negative, the call is untimely.
if redis.call('GET', KEYS[3]) then return 1 end
local refused = untimely(ARGV[1], ARGV[2])
if refused then return refused end
local latch, wrong = read()
if wrong then return wrong end
if latch and latch.count > 0 then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local generation = latch and math.max(latch.generation + 1, now) or now
-- The command that can fail comes first: if memory is full, nothing has changed.
redis.call('SET', KEYS[3], 'set', 'PX', ARGV[3])
redis.call('HSET', KEYS[1], 'count', ARGV[4], 'generation', string.format('%.0f', generation),
  'opened', latch and latch.text or '0')
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1

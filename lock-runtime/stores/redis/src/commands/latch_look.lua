-- ARGV: the owner, to get a place among the waiters, or ''; ms for which a place counts.
-- Reply: {count or -1 if not set, generation, last generation that opened, PTTL}.
-- Taking a place is O(log waiters). Each expired place is removed once.
local latch, wrong = read()
if wrong then return wrong end
if ARGV[1] ~= '' and not (latch and latch.count == 0) then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  -- This needs no free memory. After a script's first write, neither does ZADD.
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))
  redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[2]), ARGV[1])
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
end
if not latch then return {-1, '0', '0', -2} end
return {latch.count, latch.text, latch.opened, latch.pttl}

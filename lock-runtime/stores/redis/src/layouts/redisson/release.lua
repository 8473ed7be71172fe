-- Ends a hold of an exclusive lock, or leaves the queue of a fair one.
-- KEYS: lock, queue, its timeouts. ARGV: field, channel, ms to keep the lock taken, field that
-- keeps it, '1' to leave the queue.
-- Reply: 1 released, 0 not held.
local lock, queue, timeouts = KEYS[1], KEYS[2], KEYS[3]
local me, keep, denied = ARGV[1], tonumber(ARGV[3]), nil
if freed then
  tell_first(ARGV[2], queue, timeouts)
  return 1
end
if ARGV[5] == '1' then
  -- Each after the one before it: a place whose end is gone has none, and once this place has left,
  -- nobody knows whether it was the first.
  local first = redis.pcall('LINDEX', queue, 0)
  local left = is_denied(first) and first or redis.pcall('LREM', queue, 0, me)
  local ended = is_denied(left) and left or redis.pcall('ZREM', timeouts, me)
  if first == me and redis.call('EXISTS', lock) == 0 then tell_free(ARGV[2], queue, timeouts) end
  -- The hold ends all the same: a take that was refused may have written it.
  denied = is_denied(ended) and ended
end
local held = redis.pcall('HEXISTS', lock, me)
if is_denied(held) then return held end
if held ~= 1 then
  -- Of a repeated release, the field that keeps the lock is there already.
  if keep > 0 and redis.pcall('HEXISTS', lock, ARGV[4]) == 1 then return 1 end
  return denied or 0
end
if keep > 0 then
  -- A full server refuses a script whose first write may need memory, as `HSET` does.
  redis.call('PEXPIRE', lock, keep)
  redis.call('HSET', lock, ARGV[4], 1)
  redis.call('HDEL', lock, me)
  return 1
end
redis.call('DEL', lock)
tell_free(ARGV[2], queue, timeouts)
return denied or 1

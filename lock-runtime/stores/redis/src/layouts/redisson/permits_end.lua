-- Gives permits back.
-- KEYS: free permits, taken ones. ARGV: channel, ms to keep them taken, how many ids, the ids, and
-- as many that keep them taken.
-- Reply: 1 if any was taken, 0 if none.
local key, taken, keep, ids = KEYS[1], KEYS[2], tonumber(ARGV[2]), tonumber(ARGV[3])
-- Without the right to `INCRBY`, this ends before anything is given back. A full server refuses a
-- script whose first write may need memory, as `INCRBY` does, so another one comes before it.
redis.pcall('ZREM', taken, '')
if keep == 0 and redis.call('EXISTS', key) == 1 then redis.call('INCRBY', key, 0) end
local given, was_there, ends = 0, 0, string.format('%.0f', now() + keep)
for at = 4, 3 + ids do
  local removed = redis.pcall('ZREM', taken, ARGV[at])
  if is_denied(removed) then return removed end
  removed = removed == 1
  if removed and keep > 0 then
    redis.call('ZADD', taken, ends, ARGV[at + ids])
  elseif removed then
    given = given + 1
  end
  -- Of a repeated release, the ids that keep the permits taken are there already.
  local is_kept = keep > 0 and not removed and redis.pcall('ZSCORE', taken, ARGV[at + ids])
  if is_denied(is_kept) then return is_kept end
  if removed or type(is_kept) == 'string' then was_there = 1 end
end
if given > 0 and redis.call('EXISTS', key) == 1 then
  publish(ARGV[1], redis.call('INCRBY', key, given))
end
return was_there

-- Prolongs one hold. Never makes a key, and never shortens a lease.
-- KEYS: lock, key of this reader or taken permits. ARGV: kind ('lock', 'read_write' or 'permits'),
-- lease ms, field or ids.
-- Reply: 1 renewed, 0 gone.
local key, second, lease = KEYS[1], KEYS[2], tonumber(ARGV[2])
local function prolong(what)
  return redis.call('PEXPIRE', what, math.max(redis.call('PTTL', what), lease))
end
if ARGV[1] == 'permits' then
  local time = now()
  for at = 3, #ARGV do
    local ends = redis.pcall('ZSCORE', second, ARGV[at])
    if is_denied(ends) then return ends end
    if type(ends) ~= 'string' or tonumber(ends) <= time then return 0 end
  end
  -- A full server refuses a script whose first write may need memory, as `ZADD` does.
  redis.call('ZREM', second, '')
  for at = 3, #ARGV do
    local ends = math.max(tonumber(redis.call('ZSCORE', second, ARGV[at])), time + lease + AHEAD)
    redis.call('ZADD', second, 'XX', string.format('%.0f', ends), ARGV[at])
  end
  return 1
end
local held = redis.pcall('HEXISTS', key, ARGV[3])
if is_denied(held) then return held end
if ARGV[1] == 'lock' then
  if held ~= 1 then return 0 end
  return prolong(key)
end
-- A downgrade that was sent around the same time may have run, or not yet.
if redis.pcall('HEXISTS', key, ARGV[3] .. ':write') == 1 then return prolong(key) end
if held ~= 1 or redis.call('EXISTS', second) == 0 then return 0 end
prolong(second)
return prolong(key)

-- KEYS: locks. ARGV: owner and lease ms for each. Reply: for each 1 renewed, 0 gone. PEXPIRE works without free memory,
-- and can't make a key.
local replies = {}
for i, key in ipairs(KEYS) do
  local lease = tonumber(ARGV[2 * i])
  if redis.pcall('GET', key) == ARGV[2 * i - 1] then
    if redis.call('PTTL', key) < lease then redis.call('PEXPIRE', key, lease) end
    replies[i] = 1
  else
    replies[i] = 0
  end
end
return replies

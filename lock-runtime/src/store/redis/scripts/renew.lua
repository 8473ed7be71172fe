-- KEYS: locks. ARGV: for each its holder (`<owner>`, or `<owner>:<permits>`) and lease ms. Reply: for each 1 renewed,
-- 0 gone. O(locks). Works without free memory: PEXPIRE needs none, and after it neither does ZADD. Never makes a key.
local time, replies = redis.call('TIME'), {}
time = time[1] * 1000000 + time[2]
for i, key in ipairs(KEYS) do
  local member, lease = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  local holder = redis.pcall('GET', key)
  replies[i] = 0
  if holder == member then
    if redis.call('PTTL', key) < lease then redis.call('PEXPIRE', key, lease) end
    replies[i] = 1
  elseif type(holder) == 'table' then
    local ends = redis.pcall('ZSCORE', key, member)
    if not ends then
      -- A writer, if nobody has heard how its downgrade to a reader ended.
      member = string.gsub(member, ':1$', ':2147483647')
      ends = redis.pcall('ZSCORE', key, member)
    end
    if type(ends) == 'string' and tonumber(ends) > time then
      local later = math.max(ends, time + lease * 1000)
      redis.call('PEXPIRE', key, math.max(redis.call('PTTL', key), lease + 1000))
      redis.call('ZADD', key, 'XX', string.format('%.0f', later), member)
      replies[i] = 1
    end
  end
end
return replies

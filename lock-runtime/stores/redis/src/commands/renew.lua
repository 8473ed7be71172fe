-- KEYS: locks. ARGV: for each, its holder (`<owner>` or `<owner>:<permits>`) and lease ms.
-- Reply: for each 1 renewed, 0 gone, -1 denied. If all are denied, the error. O(locks).
-- Never makes a key. Needs no free memory: PEXPIRE needs none, and after a script's first write
-- neither does ZADD.
local time, replies, denied, refusal = redis.call('TIME'), {}, 0, nil
time = time[1] * 1000000 + time[2]
for i, key in ipairs(KEYS) do
  local member, lease = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  local holder = redis.pcall('GET', key)
  replies[i] = 0
  if holder == member then
    -- Write even if nothing changes: the `WAIT` that follows covers the last write.
    redis.call('PEXPIRE', key, math.max(redis.call('PTTL', key), lease))
    replies[i] = 1
  elseif type(holder) == 'table' then
    local ends = redis.pcall('ZSCORE', key, member)
    if not ends then
      -- A downgrade sent around the same time may have run, or not yet.
      local owner, permits = string.match(member, '^(.*):(%d+)$')
      member = permits == '1' and owner .. ':2147483647'
        or permits == '2147483647' and owner .. ':1' or member
      ends = redis.pcall('ZSCORE', key, member)
    end
    if type(ends) == 'table' and (is_denied(ends) or is_denied(holder)) then
      replies[i], denied, refusal = -1, denied + 1, is_denied(ends) and ends or holder
    elseif type(ends) == 'string' and tonumber(ends) > time then
      local later = math.max(ends, time + lease * 1000)
      redis.call('PEXPIRE', key, math.max(redis.call('PTTL', key), lease + 1000))
      redis.call('ZADD', key, 'XX', string.format('%.0f', later), member)
      replies[i] = 1
    end
  end
end
return denied == #KEYS and refusal or replies

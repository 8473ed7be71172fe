-- KEYS: locks. ARGV: for each, its holder (`<owner>` or `<owner>:<permits>`) and lease ms.
-- Reply: for each 1 renewed, 0 gone, -1 refused. If all are refused, the last error. O(locks).
-- Never makes a key. Needs no free memory: PEXPIRE needs none, and after a script's first write
-- neither does ZADD. A server that refuses writes still says which locks are gone. A replica may
-- lack some: if it has any of these, its error is the reply.
local time, replies, denied, refusal = redis.call('TIME'), {}, 0, nil
time = time[1] * 1000000 + time[2]
local function prolong(key, lease)
  local left = redis.pcall('PTTL', key)
  if is_denied(left) then return left end
  -- Write even if nothing changes: the `WAIT` that follows covers the last write.
  return redis.pcall('PEXPIRE', key, math.max(left, lease))
end
for i, key in ipairs(KEYS) do
  local member, lease = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  local holder, done = redis.pcall('GET', key), 0
  if holder == member then
    done = prolong(key, lease)
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
      done = is_denied(ends) and ends or holder
    elseif type(ends) == 'string' and tonumber(ends) > time then
      local later = string.format('%.0f', math.max(ends, time + lease * 1000))
      done = prolong(key, lease + 1000)
      local moved = done == 1 and redis.pcall('ZADD', key, 'XX', later, member)
      if is_denied(moved) then done = moved end
    end
  end
  if type(done) == 'table' then
    -- Redis 6 says before the code where in the script it was.
    if string.find(done.err, '^[^%u]*READONLY') then return done end
    replies[i], denied, refusal = -1, denied + 1, done
  else
    replies[i] = done
  end
end
return denied == #KEYS and refusal or replies

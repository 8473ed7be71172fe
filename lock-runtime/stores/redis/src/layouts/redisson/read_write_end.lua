-- Ends a hold of a read-write lock, or makes a reader of its writer.
-- KEYS: lock, key of this reader, key of the reader that keeps the lock taken. ARGV: field of a
-- reader, 'read' or 'write', ms to keep it taken, field of the reader that keeps it, what the names
-- of readers' keys begin with, channel, '1' to make a reader.
-- Reply: 1 done, 0 not held.
local lock, own, me, keep = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[3])
local mode = redis.pcall('HGET', lock, 'mode')
if is_denied(mode) then return mode end
if type(mode) ~= 'string' then return 0 end
local writes = redis.call('HEXISTS', lock, me .. ':write') == 1
if not writes and redis.call('HEXISTS', lock, me) == 0 then
  -- Of a repeated release, the field that keeps the lock is there already.
  local kept = ARGV[2] == 'write' and ARGV[4] .. ':write' or ARGV[4]
  if keep > 0 and redis.call('HEXISTS', lock, kept) == 1 then return 1 end
  return 0
end
if ARGV[7] == '1' then
  if writes then
    redis.call('HSET', lock, me, 1, 'mode', 'read')
    redis.call('HDEL', lock, me .. ':write')
    redis.call('SET', own, 1, 'PX', math.max(1, redis.call('PTTL', lock)))
    publish(ARGV[6], '1')
  end
  return 1
end
if keep > 0 then
  -- A full server refuses a script whose first write may need memory, as `HSET` does.
  redis.call('HDEL', lock, '')
  redis.call('HSET', lock, writes and ARGV[4] .. ':write' or ARGV[4], 1)
  if writes then
    redis.call('PEXPIRE', lock, keep)
  else
    redis.call('SET', KEYS[3], 1, 'PX', keep)
  end
end
redis.call('HDEL', lock, me, me .. ':write')
redis.call('DEL', own)
if writes and keep > 0 then return 1 end
-- It lasts as long as one of its other readers does. A reader that has died leaves its field.
local longest, is_endless, others = 0, false, redis.call('HGETALL', lock)
for at = 1, #others, 2 do
  if others[at] ~= 'mode' then
    local lasts = reader_lasts(lock, ARGV[5], others[at], others[at + 1])
    longest, is_endless = math.max(longest, lasts), is_endless or lasts == -1
  end
end
if longest > 0 or is_endless then
  redis.call('HSET', lock, 'mode', 'read')
  if not is_endless then redis.call('PEXPIRE', lock, longest) end
  if writes then publish(ARGV[6], '1') end
else
  redis.call('DEL', lock)
  publish(ARGV[6], writes and '1' or '0')
end
return 1

-- Ends all holds of a key, whatever lock of Redisson it is.
-- KEYS: key, taken permits, queue of a fair lock, its timeouts. ARGV: what the names of readers'
-- keys begin with, channels of a lock, of a read-write lock, and of a semaphore.
-- Reply: 1 if there was a hold, 0 if not; an error for what is no lock of Redisson.
local key, taken = KEYS[1], KEYS[2]
local kind = redis.call('TYPE', key).ok
if kind == 'none' then return 0 end
if kind == 'string' then
  local size = redis.pcall('ZCARD', taken)
  if type(size) == 'table' then return size end
  if not string.find(redis.call('GET', key), '^%-?%d+$') then return conflict('no semaphore') end
  if size == 0 then return 0 end
  redis.call('DEL', taken)
  publish(ARGV[4], redis.call('INCRBY', key, size))
  return 1
end
if kind ~= 'hash' then return conflict('no lock of Redisson') end
if holder_of(key) then
  redis.call('DEL', key)
  tell_free(ARGV[2], KEYS[3], KEYS[4])
  return 1
end
local mode, denied = read_write_mode(key)
if not mode then return denied or conflict('a hash, but no lock of Redisson') end
local fields = redis.call('HGETALL', key)
for at = 1, #fields, 2 do
  for hold = 1, math.min(fields[at] ~= 'mode' and tonumber(fields[at + 1]) or 0, 1000) do
    redis.call('DEL', ARGV[1] .. ':' .. fields[at] .. ':rwlock_timeout:' .. hold)
  end
end
redis.call('DEL', key)
publish(ARGV[3], '1')
return 1

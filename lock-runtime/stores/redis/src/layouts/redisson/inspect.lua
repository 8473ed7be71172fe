-- What a key holds.
-- KEYS: key, taken permits, queue of a fair lock; or the key alone, of which then only the kind is
-- told. ARGV: what the names of readers' keys begin with.
-- Reply: {kind, PTTL, places in the queue, free permits, mode or what it is, holder, ms of its
-- lease, …}. The kind is '' for nothing, 'form' for a lock of Redisson in an unknown form, and
-- 'other' for what is none. Then it is told what it is: a type, or 'text ' and a short text.
local key, taken, queue = KEYS[1], KEYS[2], KEYS[3]
-- This library's own layout, which asks for the key alone, may have no right to ask for its type.
local text = not queue and redis.pcall('GET', key)
if type(text) == 'string' then return {'other', -2, 0, 'text ' .. string.sub(text, 1, 128)} end
local kind = redis.call('TYPE', key).ok
local waiting = queue and redis.pcall('LLEN', queue)
if is_denied(waiting) then return waiting end
if type(waiting) ~= 'number' then waiting = 0 end
if kind == 'none' then return {'', -2, waiting, ''} end
local lasts = redis.call('PTTL', key)
local found = {'other', lasts, waiting, kind}
if not queue and kind ~= 'hash' then return found end
if kind == 'string' then
  local free = redis.call('GET', key)
  local size = redis.pcall('ZCARD', taken)
  if is_denied(size) then return size end
  if #free <= 128 then found[4] = 'text ' .. free end
  if type(size) == 'table' or #free > 20 or not string.find(free, '^%-?%d+$') then return found end
  found[1], found[4] = 'permits', free
  local time = now()
  local live = redis.call('ZRANGEBYSCORE', taken, time, '+inf', 'WITHSCORES', 'LIMIT', 0, 1000)
  for at = 1, #live, 2 do
    local rest = tonumber(live[at + 1]) - time
    found[#found + 1] = live[at]
    found[#found + 1] = rest < 900000000000000 and rest or -1
  end
  return found
end
if kind ~= 'hash' then return found end
local holder = holder_of(key)
if holder then return {'lock', lasts, waiting, '', holder, lasts} end
local mode, denied = read_write_mode(key)
if not mode then
  if denied then return denied end
  for _, field in ipairs(redis.call('HSCAN', key, 0)[2]) do
    if is_holder(field) then found[1] = 'form' end
  end
  return found
end
found[1], found[4] = 'read_write', mode
if not queue then return found end
local fields = redis.call('HGETALL', key)
for at = 1, #fields, 2 do
  local holder, rest = fields[at], lasts
  if holder ~= 'mode' and not string.find(holder, ':write$') then
    rest = reader_lasts(key, ARGV[1], holder, fields[at + 1])
  end
  -- A reader that has died leaves its field.
  if holder ~= 'mode' and rest ~= -2 then
    found[#found + 1] = holder
    found[#found + 1] = rest
  end
end
return found

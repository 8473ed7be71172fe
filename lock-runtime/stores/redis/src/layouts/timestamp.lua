-- A lock as the oldest recipe writes it (`SETNX`, `GETSET`): the time of its end, since 1970, in
-- units of a millisecond or a second, with a TTL or without one. It names no owner. A second key
-- does so for ours: the value that the lock must have, a space, the owner token, and then perhaps
-- `:kept`, as nobody's whose time still counts.
--
-- KEYS: lock, owner. ARGV: what to do, ms of a unit, skew ms, and then
-- - acquire: owner, lease ms;
-- - renew: owner, lease ms. Never takes over another value, and never shortens a lease;
-- - release: owner, for how many ms the key stays taken;
-- - look, free: nothing.
-- Reply: {code, value, rest in ms}. The code is 1 if it was done, or somebody holds the lock; 0 if
-- not; 2 if the key is no such lock, and the value says what it is. A value of ours is followed by
-- a space, its owner, and perhaps `:kept`.
local key, unit, skew, own = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local now = redis.call('TIME')
now = now[1] * 1000 + now[2] / 1000
local text = redis.pcall('GET', key)
if is_denied(text) then return text end
if type(text) == 'table' then return {2, redis.call('TYPE', key).ok, -1} end
-- Nobody writes a longer one. A reply of many megabytes would end the connection.
local ends = text and #text <= 32 and string.match(text, '^%d+%.?%d*$') and tonumber(text) * unit
-- Read in the other unit, a lock would seem to be over since 1970, or to have no end.
if text and (not ends or ends < 1e11 or ends > 1e14) then
  local number = ends and ends / unit
  local other = number and (unit == 1 and number > 1e8 and number < 1e11 and 's'
    or unit == 1000 and number > 1e11 and number < 1e14 and 'ms')
  return {2, other and 'unit ' .. other or 'text ' .. string.sub(text, 1, 128), -1}
end
-- Its writer may count whole units, and be behind the server.
local left = ends and math.ceil(ends + unit + skew - now) or 0
-- Another's value may be equal to ours only if ours ended before its time, or was set to it.
local owned = text and redis.pcall('GET', KEYS[2])
if is_denied(owned) then return owned end
owned = type(owned) == 'string' and #owned <= 128 and owned
local is_ours = owned and string.sub(owned, 1, #text + 1) == text .. ' '
local is_own = is_ours and own and owned == text .. ' ' .. own
local acts = {}

-- Writes an end that nobody reads as an earlier one, up to the skew.
local function write(lasts, least, owner)
  local value = math.max(math.ceil((now + lasts + skew) / unit), least)
  local written = string.format('%.0f', value)
  local ttl = string.format('%.0f', math.ceil(value * unit - now) + unit + skew)
  -- Needs no free memory. After a script's first write, neither do the other commands.
  if is_own then redis.call('PEXPIRE', key, ttl) end
  redis.call('SET', key, written, 'PX', ttl)
  redis.call('SET', KEYS[2], written .. ' ' .. owner, 'PX', ttl)
  return {1, '', 0}
end

function acts.acquire()
  if left > 0 and not is_own then return acts.look(0) end
  return write(ARGV[5], is_own and ends / unit or 0, own)
end

function acts.renew()
  if not is_own or now >= ends then return {0, '', 0} end
  return write(ARGV[5], ends / unit, own)
end

function acts.release()
  if not is_own then return {0, '', 0} end
  if ARGV[5] ~= '0' then return write(ARGV[5], 0, own .. ':kept') end
  redis.call('DEL', key, KEYS[2])
  return {1, '', 0}
end

function acts.look(code)
  if left <= 0 then return {0, '', 0} end
  return {code or 1, is_ours and owned or text, left}
end

function acts.free()
  redis.call('DEL', key, KEYS[2])
  return {left > 0 and 1 or 0, '', 0}
end

return acts[ARGV[1]]()

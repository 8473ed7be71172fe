-- A lock as the oldest recipe writes it (`SETNX`, `GETSET`): the time of its end, since 1970, in
-- units of a millisecond or a second, with a TTL or without one. It names no owner.
--
-- KEYS: lock. ARGV: what to do, ms of a unit, skew ms, and then
-- - acquire: the value that the owner is known to have written, or nothing; lease ms;
-- - renew: that value, lease ms. Never takes over another value, and never shortens a lease;
-- - release: that value, for how many ms the key stays taken;
-- - look, free: nothing.
-- Reply: {code, value, rest in ms}. The code is 1 if it was done, or somebody holds the lock; 0 if
-- not; 2 if the key is no such lock, and the value says what it is.
local key, unit, skew, own = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local now = redis.call('TIME')
now = now[1] * 1000 + now[2] / 1000
local text = redis.pcall('GET', key)
if type(text) == 'table' then
  if not string.find(text.err, 'WRONGTYPE', 1, true) then return text end
  return {2, redis.call('TYPE', key).ok, -1}
end
local ends = text and string.match(text, '^%d+%.?%d*$') and tonumber(text) * unit
-- Read in the other unit, a lock would seem to be over since 1970, or to have no end.
if text and (not ends or ends < 1e11 or ends > 1e14) then
  local number = ends and ends / unit
  local other = number and (unit == 1 and number > 1e8 and number < 1e11 and 's'
    or unit == 1000 and number > 1e11 and number < 1e14 and 'ms')
  return {2, other and 'unit ' .. other or 'text ' .. text, -1}
end
-- Its writer may count whole units, and be behind the server.
local left = ends and math.ceil(ends + unit + skew - now) or 0
local acts = {}

-- Writes an end that nobody reads as an earlier one, up to the skew.
local function write(lasts)
  local value = math.ceil((now + lasts + skew) / unit)
  if own == text then value = math.max(value, ends / unit) end
  local written = string.format('%.0f', value)
  local ttl = math.ceil(value * unit - now) + unit + skew
  redis.call('SET', key, written, 'PX', string.format('%.0f', ttl))
  return {1, written, 0}
end

function acts.acquire()
  if left > 0 and own ~= text then return acts.look(0) end
  return write(ARGV[5])
end

function acts.renew()
  if not text or own ~= text or now >= ends then return {0, '', 0} end
  return write(ARGV[5])
end

function acts.release()
  if not text or own ~= text then return {0, '', 0} end
  if ARGV[5] ~= '0' then
    own = nil
    return write(ARGV[5])
  end
  redis.call('DEL', key)
  return {1, '', 0}
end

function acts.look(code)
  if left <= 0 then return {0, '', 0} end
  return {code or 1, text, left}
end

function acts.free()
  redis.call('DEL', key)
  return {left > 0 and 1 or 0, '', 0}
end

return acts[ARGV[1]]()

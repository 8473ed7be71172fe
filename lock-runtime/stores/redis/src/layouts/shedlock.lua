-- A lock as ShedLock writes it: a text `ADDED:<time>@<host>:<who>`, with an end. Of ours, <who> is
-- the owner token, and then perhaps `:kept`, as nobody's whose time still counts.
--
-- KEYS: lock. ARGV: what to do, and then
-- - acquire: the end of the owner's text, all of that text, lease ms;
-- - renew: the end of the owner's text, lease ms. Never makes a key, and never shortens a lease;
-- - release: the end of the owner's text, for how many ms the key stays taken;
-- - look, free: nothing.
-- Reply: {code, text, rest in ms}. The code is 1 if it was done, or somebody holds the lock; 0 if
-- not; 2 if the key is no such lock, and the text says what it is. A rest of -1 has no end.
local key, own = KEYS[1], ARGV[2]
local text = redis.pcall('GET', key)
if is_denied(text) then return text end
if type(text) == 'table' then return {2, redis.call('TYPE', key).ok, -1} end
if text and string.sub(text, 1, 6) ~= 'ADDED:' then
  return {2, 'text ' .. string.sub(text, 1, 128), -1}
end
local is_own = text and own and string.sub(text, -#own) == own
local acts = {}

function acts.acquire()
  if is_own then return acts.renew(ARGV[4]) end
  if text then return acts.look(0) end
  redis.call('SET', key, ARGV[3], 'PX', ARGV[4])
  return {1, '', 0}
end

function acts.renew(lease)
  if not is_own then return {0, '', 0} end
  redis.call('PEXPIRE', key, math.max(redis.call('PTTL', key), lease or ARGV[3]))
  return {1, '', 0}
end

function acts.release()
  if not is_own then return {0, '', 0} end
  if ARGV[3] == '0' then
    redis.call('DEL', key)
  else
    -- Needs no free memory. After a script's first write, neither does SET.
    redis.call('PEXPIRE', key, ARGV[3])
    redis.call('SET', key, text .. ':kept', 'PX', ARGV[3])
  end
  return {1, '', 0}
end

function acts.look(code)
  if not text then return {0, '', 0} end
  -- A reply of many megabytes would end the connection. Its begin and end say who holds it.
  local shown = text
  if #text > 1024 then shown = string.sub(text, 1, 256) .. '...' .. string.sub(text, -128) end
  return {code or 1, shown, redis.call('PTTL', key)}
end

function acts.free()
  return {redis.call('DEL', key), '', 0}
end

return acts[ARGV[1]]()

-- The common cases of acquire.lua, before the rest costs anything. The lock is exclusive, and the
-- request replaces no other hold. Numbers stay text: the server is slow at formatting them.
local barges = #ARGV == 4
local tokens = barges and ARGV[4] or #ARGV == 6 and string.match(ARGV[3], '^%d+:%d+:?(%d*)$')
if tokens then
  local free, holder
  if barges then
    local set = redis.pcall('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
    free = set and set.ok
  else
    holder = redis.pcall('GET', KEYS[1])
    -- Nobody waits.
    if not holder and redis.call('PTTL', KEYS[2]) == -2 then
      redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
      if tokens == '' then return 1 end
      free = true
    end
  end
  local waits = type(holder) == 'string' and holder ~= ARGV[1] and ARGV[4] == 'join'
  if free or waits then
    local last, time = free and (redis.pcall('GET', KEYS[3]) or '0'), redis.call('TIME')
    local now, micros = time[1], time[2]
    now = now .. (#micros == 6 and micros or string.sub('00000' .. micros, -6))
    -- The first token is the time, if that is above all tokens before (see tokens.lua).
    if free and type(last) == 'string' and string.find(last, '^%d+$') and last - now < 0 then
      last = tokens == '1' and now or string.format('%.0f', now + tokens - 1)
      redis.call('SET', KEYS[3], last, 'PX', '86400000')
      return now
    end
    if free then
      -- acquire.lua finds another token, or reports the wrong counter.
      redis.call('DEL', KEYS[1])
    else
      -- A place in the queue of a lock that somebody else holds.
      local me = ARGV[1] .. ':' .. ARGV[3]
      local added = redis.pcall('ZADD', KEYS[2], 'NX', now, me)
      -- If places of this client were suspended, acquire.lua must bring them back.
      local heard = added == 1 and redis.call('ZSCORE', KEYS[2], string.match(ARGV[1], '^%x+'))
      if added == 1 and (not heard or tonumber(heard) > 6100000000000000) then
        redis.call('PEXPIRE', KEYS[2], ARGV[6])
        return {0, redis.call('PTTL', KEYS[1]), 1, string.sub(holder, 1, 128)}
      end
      -- A request that has a place can ask again without free memory.
      if type(added) == 'table' and not redis.call('ZSCORE', KEYS[2], me) then return added end
    end
  end
end


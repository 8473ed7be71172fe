-- The common cases of acquire.lua, before the rest costs anything: locks are exclusive, and no
-- request replaces another hold. Numbers stay text: the server is slow at formatting them. What is
-- local here is acquire.lua's, too.
local count, rest, owner = #KEYS / 3, ARGV[5], ARGV[6]
local lease, mode, ttl = ARGV[1], ARGV[2], ARGV[4]
local tokens = #ARGV == 4 + 2 * count and string.match(rest, '^%d+:%d+:?(%d*)$')
if tokens then
  local replies, now = {}, nil
  for i = 1, count do
    local lock, queue, counter = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
    local place, asking, free, holder = ARGV[3 + 2 * i], ARGV[4 + 2 * i], false, nil
    if i > 1 then tokens = string.match(place, '^%d+:%d+:?(%d*)$') end
    if mode == 'barge' then
      local set = redis.pcall('SET', lock, asking, 'NX', 'PX', lease)
      free = set and set.ok ~= nil
    else
      holder = redis.pcall('GET', lock)
      -- Nobody waits.
      free = not holder and redis.call('PTTL', queue) == -2
      if free then free = redis.pcall('SET', lock, asking, 'PX', lease).ok ~= nil end
    end
    replies[i] = free and tokens == '' and 1
    local counts = free and tokens ~= ''
    -- Behind somebody else, or in a queue: of one lock, acquire.lua serves that.
    local waits = mode == 'join' and not free and (type(holder) == 'string' and holder ~= asking
      or not holder and count > 1)
    if not now and (counts or waits) then
      local time = redis.call('TIME')
      local micros = time[2]
      now = time[1] .. (#micros == 6 and micros or string.sub('00000' .. micros, -6))
    end
    if counts then
      local last = redis.pcall('GET', counter) or '0'
      -- The first token is the time, if that is above all tokens before (see tokens.lua).
      if type(last) == 'string' and string.find(last, '^%d+$') and last - now < 0 then
        last = tokens == '1' and now or string.format('%.0f', now + tokens - 1)
        -- FENCE_TTL.
        redis.call('SET', counter, last, 'PX', '86400000')
        replies[i] = now
      else
        -- acquire.lua finds another token, or reports the wrong counter.
        redis.call('DEL', lock)
      end
    elseif waits then
      local me = asking .. ':' .. place
      local added = redis.pcall('ZADD', queue, 'NX', now, me)
      -- If places of this client were suspended, acquire.lua must bring them back.
      local heard = added == 1 and redis.call('ZSCORE', queue, string.match(asking, '^%x+'))
      if added == 1 and (not heard or tonumber(heard) > 6100000000000000) then
        redis.call('PEXPIRE', queue, ttl)
        replies[i] = holder
          and {0, redis.call('PTTL', lock), 1, string.sub(holder, 1, 128)} or false
      elseif count == 1 and type(added) == 'table' and not redis.call('ZSCORE', queue, me) then
        -- A request that has a place can ask again without free memory.
        return added
      end
    end
  end
  if count > 1 then return replies end
  if replies[1] then return replies[1] end
end


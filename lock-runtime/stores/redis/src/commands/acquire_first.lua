-- The common cases of acquire.lua, before the rest costs anything. The lock is exclusive, and the
-- request replaces no other hold.
local tokens = #ARGV == 6 and string.match(ARGV[3], '^%d+:%d+:?(%d*)$')
if tokens then
  -- A free lock, asked for once, with a fencing token.
  if ARGV[4] == 'barge' and tokens ~= '' then
    local set = redis.pcall('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
    if set and set.ok then
      local at = {fence = KEYS[3]}
      local token = mint(at, tonumber(tokens))
      if token then
        keep_tokens(at, token, tonumber(tokens))
        return {1, token}
      end
      -- acquire.lua reports the wrong counter.
      redis.call('DEL', KEYS[1])
    end
  end
  local holder = redis.pcall('GET', KEYS[1])
  -- A place in the queue of a lock that somebody else holds.
  if type(holder) == 'string' and holder ~= ARGV[1] and ARGV[4] == 'join' then
    local me, time = ARGV[1] .. ':' .. ARGV[3], redis.call('TIME')
    -- Times stay strings: the server is slow at formatting numbers.
    local now = string.format('%s%06d', time[1], time[2])
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


-- The common cases of acquire.lua, before the rest of it costs anything: of an exclusive lock instead of which nothing ends.
local tokens = #ARGV == 6 and string.match(ARGV[3], '^%d+:%d+:?(%d*)$')
if tokens then
  local holder = redis.pcall('GET', KEYS[1])
  -- A free lock, asked for once with a fencing token.
  if not holder and ARGV[4] == 'barge' and tokens ~= '' then
    local at = {fence = KEYS[3]}
    local token = mint(at, tonumber(tokens))
    if token then
      redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
      keep_tokens(at, token, tonumber(tokens))
      return {1, token}
    end
  end
  -- A place in the queue of a lock that somebody else has.
  if type(holder) == 'string' and holder ~= ARGV[1] and ARGV[4] == 'join' then
    local me, time = ARGV[1] .. ':' .. ARGV[3], redis.call('TIME')
    -- Texts, since the server takes long to write a number down.
    local now = string.format('%s%06d', time[1], time[2])
    local added = redis.pcall('ZADD', KEYS[2], 'NX', now, me)
    -- A client of which places were passed over has to have them back, see `was_passed_over`.
    local heard = added == 1 and redis.call('ZSCORE', KEYS[2], string.match(ARGV[1], '^%x+'))
    if added == 1 and (not heard or tonumber(heard) > 6100000000000000) then
      redis.call('PEXPIRE', KEYS[2], ARGV[6])
      return {0, redis.call('PTTL', KEYS[1]), 1, holder}
    end
    -- Whoever has a place needs no free memory to look again.
    if type(added) == 'table' and not redis.call('ZSCORE', KEYS[2], me) then return added end
  end
end


-- The common cases of acquire.lua, before the rest of it costs anything.
if #ARGV == 7 then
  local holder = redis.pcall('GET', KEYS[1])
  -- A free lock, asked for once with a fencing token.
  if not holder and ARGV[5] == 'barge' and ARGV[4] ~= '0' then
    local at, tokens = {fence = KEYS[3]}, tonumber(ARGV[4])
    local token = mint(at, tokens)
    if token then
      redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
      keep_tokens(at, token, tokens)
      return {1, token}
    end
  end
  -- A place in the queue of a lock that somebody else has.
  if type(holder) == 'string' and holder ~= ARGV[1] and ARGV[5] == 'join' then
    local me = ARGV[4] .. ':' .. ARGV[3] .. ':0:0:' .. ARGV[1]
    -- Texts, since the server takes long to write a number down.
    local last = redis.call('ZRANGE', KEYS[2], '-1', '-1', 'WITHSCORES')
    if last[1] ~= me then
      local added = redis.pcall('ZADD', KEYS[2], 'NX', string.format('%d', (last[2] or 0) + 1), me)
      -- Whoever has a place needs no free memory to look again.
      if type(added) == 'table' and not redis.call('ZSCORE', KEYS[2], me) then return added end
    end
    redis.call('PEXPIRE', KEYS[2], ARGV[7])
    return {0, redis.call('PTTL', KEYS[1]), 1}
  end
end


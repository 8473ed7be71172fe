-- The common cases of acquire.lua, before the rest of it costs anything.
if ARGV[8] == '0' and ARGV[10] == '' then
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
    -- Whoever has a place needs no free memory to look again.
    if not redis.call('ZSCORE', KEYS[2], me) then
      local last = redis.call('ZRANGE', KEYS[2], '-1', '-1', 'WITHSCORES')[2] or '0'
      redis.call('ZADD', KEYS[2], last + 1, me)
    end
    redis.call('PEXPIRE', KEYS[2], ARGV[7])
    return {0, redis.call('PTTL', KEYS[1]), 1}
  end
end


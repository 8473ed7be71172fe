-- The common cases of release.lua, before the rest of it costs anything: one exclusive lock (of which only the channels and
-- the owner are given) that nobody waits for, or somebody does who wants it exclusively and without a token.
if #ARGV == 2 and redis.pcall('GET', KEYS[1]) == ARGV[2] then
  -- Texts, since the server takes long to write a number down.
  local waiters = redis.pcall('ZRANGE', KEYS[2], '0', '0')
  if not waiters.err and not waiters[1] then
    redis.call('DEL', KEYS[1])
    return 1
  end
  local lease, owner, client = string.match(waiters[1] or '', '^0:(%d+):0:0:((%x+)%-%x+)$')
  if owner then
    -- This needs no free memory, and after it what follows does not either.
    redis.call('ZREM', KEYS[2], waiters[1])
    redis.call('SET', KEYS[1], owner, 'PX', lease)
    if redis.pcall('PUBLISH', ARGV[1] .. client, owner .. ' ') ~= 0 then return 1 end
    -- Its client is gone: as it was before, and on to who waits behind it.
    redis.call('SET', KEYS[1], ARGV[2], 'PX', lease)
  end
end


-- The common cases of release.lua, before the rest of it costs anything: one exclusive lock (of which only the channels and
-- the owner are given) that nobody waits for, or somebody does who wants it exclusively and without a token.
if #ARGV == 2 and redis.pcall('GET', KEYS[1]) == ARGV[2] then
  -- Texts, since the server takes long to write a number down.
  local waiters = redis.pcall('ZRANGE', KEYS[2], '0', '1', 'WITHSCORES')
  if not waiters.err and not waiters[1] then
    redis.call('DEL', KEYS[1])
    return 1
  end
  local owner, client, lease, wait = string.match(waiters[1] or '', '^((%x+)%-%x+):(%d+):(%d+)$')
  if owner then
    local time = redis.call('TIME')
    local waited = time[1] * 1000000 + time[2] - waiters[2]
    -- It was not passed over, its client was heard lately, and it waits still.
    if waited > -1000000000000000 and waited <= 2000000 and (wait == '0' or waited <= wait * 1000) then
      -- This needs no free memory, and after it what follows does not either. Without another place, of which there is
      -- nothing but who was heard when, the queue ends.
      if waiters[3] and #waiters[3] > 32 then
        redis.call('ZREM', KEYS[2], waiters[1])
      else
        redis.call('DEL', KEYS[2])
      end
      redis.call('SET', KEYS[1], owner, 'PX', lease)
      if redis.pcall('PUBLISH', ARGV[1] .. client, '1 granted ' .. owner .. ' ') ~= 0 then return 1 end
      -- Its client is gone: as it was before, and on to who waits behind it.
      redis.call('SET', KEYS[1], ARGV[2], 'PX', lease)
    end
  end
end


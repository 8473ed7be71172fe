-- The common cases of release.lua, before the rest costs anything: one exclusive lock, given by
-- channel prefix and owner only. Either nobody waits for it, or the first waiter wants it
-- exclusively and without a token.
if #ARGV == 2 and redis.pcall('GET', KEYS[1]) == ARGV[2] then
  -- No queue.
  if redis.call('PTTL', KEYS[2]) == -2 then
    redis.call('DEL', KEYS[1])
    return 1
  end
  -- Times stay strings: the server is slow at formatting numbers.
  local waiters = redis.pcall('ZRANGE', KEYS[2], '0', '1', 'WITHSCORES')
  local owner, client, lease, wait = string.match(waiters[1] or '', '^((%x+)%-%x+):(%d+):(%d+)$')
  if owner then
    local time = redis.call('TIME')
    local waited = time[1] * 1000000 + time[2] - waiters[2]
    -- The waiter was not suspended, its client was heard lately, and it still waits.
    if waited > -1000000000000000 and waited <= 2000000
      and (wait == '0' or waited <= wait * 1000) then
      -- Needs no free memory. After a script's first write, neither do the other commands. A
      -- client's record has 32 characters, a place has more. If no other place is left, delete the
      -- queue.
      if waiters[3] and #waiters[3] > 32 then
        redis.call('ZREM', KEYS[2], waiters[1])
      else
        redis.call('DEL', KEYS[2])
      end
      redis.call('SET', KEYS[1], owner, 'PX', lease)
      local granted = '1 granted ' .. owner .. ' '
      if redis.pcall('PUBLISH', ARGV[1] .. client, granted) ~= 0 then return 1 end
      -- The waiter's client is gone. Restore the hold, so that release.lua serves the next waiter.
      redis.call('SET', KEYS[1], ARGV[2], 'PX', lease)
    end
  end
end


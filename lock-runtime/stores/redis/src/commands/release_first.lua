-- The common cases of release.lua, before the rest costs anything: exclusive locks, given by
-- channel prefix and owners only. Either nobody waits for one, or the first waiter wants it
-- exclusively and without a token. What is local here is release.lua's, too.
local replies, open = {}, #KEYS / 3
local is_plain = #ARGV == open + 1
for i = 1, is_plain and open or 0 do
  local lock, queue, mine = KEYS[3 * i - 2], KEYS[3 * i - 1], ARGV[i + 1]
  if redis.pcall('GET', lock) == mine then
    -- No queue.
    if redis.call('PTTL', queue) == -2 then
      redis.call('DEL', lock)
      replies[i], open = 1, open - 1
    else
      -- Times stay strings: the server is slow at formatting numbers.
      local waiters = redis.pcall('ZRANGE', queue, '0', '1', 'WITHSCORES')
      local owner, client, lease, wait =
        string.match(waiters[1] or '', '^((%x+)%-%x+):([1-9]%d*):(%d+)$')
      local time = owner and redis.call('TIME')
      local waited = owner and time[1] * 1000000 + time[2] - waiters[2]
      -- The waiter was not suspended, its client was heard lately, and it still waits.
      if owner and waited > -1000000000000000 and waited <= 2000000
        and (wait == '0' or waited <= wait * 1000) then
        -- Needs no free memory. After a script's first write, neither do the other commands. A
        -- client's record has 32 characters, a place has more. If no other place is left, delete
        -- the queue.
        if waiters[3] and #waiters[3] > 32 then
          redis.call('ZREM', queue, waiters[1])
        else
          redis.call('DEL', queue)
        end
        redis.call('SET', lock, owner, 'PX', lease)
        if redis.pcall('PUBLISH', ARGV[1] .. client, '1 granted ' .. owner .. ' ') ~= 0 then
          replies[i], open = 1, open - 1
        else
          -- The waiter's client is gone. Restore the hold, so that release.lua serves the next.
          redis.call('SET', lock, mine, 'PX', lease)
        end
      end
    end
  end
end
if open == 0 then return #KEYS > 3 and replies or 1 end


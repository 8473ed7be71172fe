-- Ends one server's part of a lock of a quorum.
-- ARGV: owner, ms to keep the key, channel for the message that the lock is free (or ''), the
-- lock's name for its users.
-- Reply: 1 ended, 0 not held. O(1).
local owner, keep, channel = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local at = names(1)
local holder = redis.pcall('GET', at.lock)
if is_denied(holder) then return holder end
local held = holder == owner
if held then
  -- Needs no free memory. After a script's first write, neither do the other commands.
  redis.call('DEL', at.lock)
  -- The value names no owner any more, so a renewal under way can't extend it.
  if keep > 0 then redis.call('SET', at.lock, owner .. ':kept', 'PX', keep) end
end
if channel ~= '' and keep == 0 then
  local listen = redis.pcall('PUBSUB', 'NUMSUB', channel)
  redis.pcall('PUBLISH', channel, '1 freed ' .. owner .. ' ' .. (listen[2] or 1) .. ' ' .. ARGV[4])
end
return held and 1 or 0

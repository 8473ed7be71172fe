-- The common case of release.lua, before the rest costs anything: the lock is not kept, its owner
-- does not stand in a queue, and nobody else does.
local freed = false
if ARGV[3] == '0' and ARGV[5] ~= '1' then
  -- With its only field, the key is gone.
  local ended = redis.pcall('HDEL', KEYS[1], ARGV[1])
  if is_denied(ended) then return ended end
  if ended ~= 1 then return 0 end
  redis.pcall('PUBLISH', ARGV[2], '0')
  if redis.call('EXISTS', KEYS[2]) == 0 then return 1 end
  freed = true
end


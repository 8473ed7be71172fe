-- Frees an exclusive lock and skips the queue: the key is left to whoever asks first.
-- ARGV: owner.
-- Reply: 0 not held; 1 freed; 3 freed, and somebody waits in the queue.
local holder = redis.pcall('GET', KEYS[1])
if is_denied(holder) then return holder end
if holder ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
if redis.call('PTTL', KEYS[2]) == -2 then return 1 end
return 3

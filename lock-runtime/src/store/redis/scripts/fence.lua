-- ARGV: owner. Reply: a new token, or nil if the owner does not hold the lock.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return false end
local token = mint()
if not token then return redis.error_reply('WRONGTYPE the fence counter is not a number') end
redis.call('SET', KEYS[3], token, 'PX', FENCE_TTL)
return token

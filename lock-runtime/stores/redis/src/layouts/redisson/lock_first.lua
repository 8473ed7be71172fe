-- Takes a lock that is free, for a request that has not asked before and waits for nobody.
-- KEYS: lock. ARGV: field, lease ms. Reply: 1 taken, 0 not free.
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], '1')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1

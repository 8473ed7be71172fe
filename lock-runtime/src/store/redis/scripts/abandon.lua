-- ARGV: owner, first lease ms, fenced 0|1, channel prefix. Reply: 1 a grant was undone, 0 there was none.
redis.pcall('ZREM', KEYS[2], ARGV[3] .. ':' .. ARGV[2] .. ':' .. ARGV[1])
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if not hand_over(ARGV[4]) then redis.call('DEL', KEYS[1]) end
return 1

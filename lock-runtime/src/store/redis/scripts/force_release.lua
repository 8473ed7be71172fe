-- ARGV: channel prefix. Reply: 1 if there was a hold.
if not redis.call('GET', KEYS[1]) then return 0 end
if not hand_over(ARGV[1]) then redis.call('DEL', KEYS[1]) end
return 1

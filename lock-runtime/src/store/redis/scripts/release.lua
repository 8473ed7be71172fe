-- ARGV: owner, ms to keep the key, channel prefix. Reply: 1 released, 0 not held.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] ~= '0' then
  -- Nobody's any more, so that a renewal under way can't make it longer. DEL first: it needs no free memory, and
  -- after it neither does SET.
  redis.call('DEL', KEYS[1])
  redis.call('SET', KEYS[1], ARGV[1] .. ':kept', 'PX', ARGV[2])
elseif not hand_over(ARGV[3]) then
  redis.call('DEL', KEYS[1])
end
return 1

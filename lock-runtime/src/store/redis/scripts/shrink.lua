-- ARGV: owner, permits, permits to keep, channel prefix. Reply: 1 it has so many now, 0 not held. O(1), and once for each
-- hold that ended and each waiter that gets its turn.
local owner, permits, rest = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local at, time = names(1), now()
local state = state_of(at, time)
if state.err or not state.shared then return 0 end
local ends, done = redis.call('ZSCORE', at.lock, owner .. ':' .. permits), 1
if ends then
  leave(at, state, owner, permits)
  redis.call('ZADD', at.lock, ends, owner .. ':' .. rest)
  state.used = state.used + rest
elseif not redis.call('ZSCORE', at.lock, owner .. ':' .. rest) then
  done = 0
end
hand_over(at, state, ARGV[4], time)
settle(at, state)
return done

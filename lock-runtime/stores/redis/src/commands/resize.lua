-- ARGV: permits there are from now on, channel prefix. Reply: 1, or 0 if it is another kind of
-- lock; and 2 more if others wait for their turn still. O(1), and once for each hold that ended and each waiter that gets
-- its turn.
local at, time, of = names(1), now(), tonumber(ARGV[1])
local state = state_of(at, time)
if state.err then return state end
if state.holder or state.used > 0 and state.of == WRITE then
  settle(at, state)
  return 0
end
if state.used > 0 then
  redis.call('ZADD', at.lock, -of, 'of')
  state.of = of
end
hand_over(at, state, ARGV[2], time)
settle(at, state)
return 1 + (state.rest or 0)

-- ARGV: channel prefix.
-- Reply: 1 if there was a hold; plus 2 if more waiters can have their turn now.
-- O(holders), and once for each waiter that gets its turn.
local at, time = names(1), now()
local state = state_of(at, time)
if state.err then return state end
local held = state.used > 0
if held or state.changed then redis.call('DEL', at.lock) end
state = {used = 0}
hand_over(at, state, ARGV[1], time)
settle(at, state)
return (held and 1 or 0) + (state.rest or 0)

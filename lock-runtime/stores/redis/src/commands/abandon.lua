-- ARGV: owner, the rest of its place (see lib.lua), channel prefix, permits (0 exclusive).
-- Reply: 1 a grant was undone, 0 there was none; plus 2 if more waiters can have their turn now.
-- O(log n) in the waiters, and once for each waiter that gets its turn.
local owner, permits = ARGV[1], tonumber(ARGV[4])
local at, time = names(1), now()
local left = redis.pcall('ZREM', at.queue, owner .. ':' .. ARGV[2])
-- A key of another type has no place of ours.
if is_denied(left) then return left end
if left == 1 then tidy(at) end
local state, held = state_of(at, time), nil
if state.err then return is_denied(state) and state or 0 end
held, permits = has(at, state, owner, permits)
if held then leave(at, state, owner, permits) end
-- A big request that is gone now may have blocked the waiters behind it.
if not state.holder then hand_over(at, state, ARGV[3], time) end
settle(at, state)
return (held and 1 or 0) + (state.rest or 0)

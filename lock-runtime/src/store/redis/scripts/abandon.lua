-- ARGV: owner, first lease ms, fenced 0|1, channel prefix, permits (0 exclusive), of.
-- Reply: 1 a grant was undone, 0 there was none. O(log n) in the waiters, and once for each that gets its turn.
local owner, permits = ARGV[1], tonumber(ARGV[5])
local at, time = names(1), now()
redis.pcall('ZREM', at.queue, ARGV[3] .. ':' .. ARGV[2] .. ':' .. ARGV[5] .. ':' .. ARGV[6] .. ':' .. owner)
local state, held = state_of(at, time), nil
if state.err then return 0 end
held, permits = held_by(at, state, owner, permits)
if held then leave(at, state, owner, permits) end
-- Who waited behind a big request that is gone now may have enough.
if held or state.shared then hand_over(at, state, ARGV[4], time) end
settle(at, state)
return held and 1 or 0

-- ARGV: owner, permits, permits to keep, channel prefix.
-- Reply: 1 the hold has that many permits now, 0 not held; plus 2 if more waiters can have their
-- turn now. O(1), and once for each hold that expired and each waiter that gets its turn.
local owner, permits, rest = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local at, time = names(1), now()
local state = state_of(at, time)
if is_denied(state) then return state end
if state.err or state.holder then return 0 end
local ends, part = has(at, state, owner, permits)
local done = ends or state.shared and redis.call('ZSCORE', at.lock, owner .. ':' .. rest)
if ends and part > rest then
  leave(at, state, owner, part)
  redis.call('ZADD', at.lock, ends, owner .. ':' .. rest)
  state.used = state.used + rest
end
hand_over(at, state, ARGV[4], time)
settle(at, state)
return (done and 1 or 0) + (state.rest or 0)

-- ARGV: owner, permits (0 exclusive).
-- Reply: a new token, or nil if the owner does not hold the lock. O(1).
local at, time = names(1), now()
local state = state_of(at, time)
if state.err then return state end
settle(at, state)
if not has(at, state, ARGV[1], tonumber(ARGV[2])) then return false end
local token = mint(at, 1)
if not token then return wrong_counter(at) end
keep_tokens(at, token, 1)
return token

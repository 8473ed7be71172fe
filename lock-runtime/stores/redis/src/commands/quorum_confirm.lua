-- Keeps fencing tokens for a lock of a quorum, if the owner still has its part here and the counter
-- is below the first of them.
-- ARGV: owner, first token, how many. Reply: 1 confirmed, 0 not. O(1).
local token = tonumber(ARGV[2])
local at = names(1)
local holder = redis.pcall('GET', at.lock)
if is_denied(holder) then return holder end
if holder ~= ARGV[1] then return 0 end
local last = last_token(at)
if not last then return wrong_counter(at) end
if last >= token then return 0 end
keep_tokens(at, token, tonumber(ARGV[3]))
return 1

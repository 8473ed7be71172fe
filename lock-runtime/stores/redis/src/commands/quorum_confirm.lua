-- Keeps fencing tokens for a lock of a quorum, if the owner has it here still and no token as high was kept before.
-- ARGV: owner, first token, how many. Reply: 1 confirmed, 0 not. O(1).
local token = tonumber(ARGV[2])
local at = names(1)
if redis.pcall('GET', at.lock) ~= ARGV[1] then return 0 end
local last = redis.pcall('GET', at.fence)
if type(last) == 'table' then return last end
last = tonumber(last or '0')
if not last or last >= token then return 0 end
keep_tokens(at, token, tonumber(ARGV[3]))
return 1

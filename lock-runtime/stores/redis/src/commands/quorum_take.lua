-- Takes one server's part of a lock of a quorum, and proposes a fencing token.
-- ARGV: owner, lease ms (0: take nothing that the owner does not have), 0|1 whether to propose a
-- token.
-- Reply: {1, next token or ''}; {0, ms until the holder's lease ends, holder}. O(1).
local owner, lease, fenced = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local at = names(1)
local holder = redis.pcall('GET', at.lock)
if type(holder) == 'table' then return holder end
if holder ~= owner and (holder or lease == 0) then
  return {0, redis.call('PTTL', at.lock), shown(holder or '')}
end
-- The token is not kept yet: quorum_confirm.lua keeps the highest proposal of a majority.
local token = ''
if fenced then
  token = mint(at, 1)
  if not token then return wrong_counter(at) end
end
if not holder then redis.call('SET', at.lock, owner, 'PX', lease) end
return {1, token}

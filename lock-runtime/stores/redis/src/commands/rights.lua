-- ARGV: commands with their arguments. Reply: for each, 1 if the user may run it, else 0. The list
-- is empty if the server can't tell (before Redis 7). This check leaves nothing in the ACL log.
local replies = {}
if not redis.acl_check_cmd then return replies end
for i, command in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(command, '%S+') do words[#words + 1] = word end
  local known, may = pcall(redis.acl_check_cmd, unpack(words))
  replies[i] = known and may and 1 or 0
end
return replies

-- Shared by the scripts: whether the server refused a command for another reason than what the key
-- holds. Then nothing is known of the lock, and the error is the script's reply.
local function is_denied(reply)
  local code = type(reply) == 'table' and reply.err and string.match(reply.err, '^%u*')
  return code and code ~= 'WRONGTYPE' and code ~= 'LOCKVERSION'
end


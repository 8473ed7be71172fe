-- KEYS: a name that no key has. ARGV: a channel on which nobody listens.
-- Reply: 1 if the user may run EVALSHA, 0 if only trying can tell (also before Redis 7). Then each
-- command of the other scripts that fails here, followed by what the server says.
-- Changes nothing: what writes finds nothing to write to. O(1).
local key, channel = KEYS[1], ARGV[1]
local known, may = pcall(redis.acl_check_cmd or error, 'EVALSHA', channel, 0)
local replies = {known and may and 1 or 0}
for _, call in ipairs({
  {'TIME'}, {'GET', key}, {'SET', key, '', 'XX', 'PX', 1}, {'DEL', key}, {'PTTL', key},
  {'PEXPIRE', key, 1}, {'ZADD', key, 'XX', 1, ''}, {'ZREM', key, ''}, {'ZRANGE', key, 0, 0},
  {'ZSCORE', key, ''}, {'ZCOUNT', key, 0, 0}, {'ZRANGEBYSCORE', key, 0, 0},
  {'PUBLISH', channel, ''}, {'PUBSUB', 'NUMSUB', channel},
}) do
  local reply = redis.pcall(unpack(call))
  if type(reply) == 'table' and reply.err then
    local name = call[1] == 'PUBSUB' and call[1] .. ' ' .. call[2] or call[1]
    replies[#replies + 1], replies[#replies + 2] = name, reply.err
  end
end
return replies

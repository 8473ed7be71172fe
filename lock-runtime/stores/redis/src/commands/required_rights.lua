-- KEYS: a name that no key has. ARGV: a channel on which nobody listens, the layout of the locks.
-- Reply: 1 if the user may run EVALSHA, 0 if only trying can tell (also before Redis 7). Then each
-- command of the other scripts that fails here, followed by what the server says.
-- Changes nothing: what writes finds nothing to write to, or is only asked about. O(1).
local key, channel = KEYS[1], ARGV[1]
local may_ask = redis.acl_check_cmd
local known, may = pcall(may_ask or error, 'EVALSHA', channel, 0)
local replies = {known and may and 1 or 0}
local function add(call, said)
  local name = call[1] == 'PUBSUB' and call[1] .. ' ' .. call[2] or call[1]
  replies[#replies + 1], replies[#replies + 2] = name, said
end

local tried = {
  {'GET', key}, {'SET', key, '', 'XX', 'PX', 1}, {'DEL', key}, {'PUBLISH', channel, ''},
}
local asked = {}
local function try(calls) for _, call in ipairs(calls) do tried[#tried + 1] = call end end
if ARGV[2] == 'shedlock' then
  try({{'PTTL', key}, {'PEXPIRE', key, 1}, {'TYPE', key}})
elseif ARGV[2] == 'timestamp' then
  try({{'TIME'}, {'PEXPIRE', key, 1}, {'TYPE', key}})
elseif ARGV[2] == 'redisson' then
  try({
    {'TIME'}, {'PTTL', key}, {'PEXPIRE', key, 1}, {'TYPE', key}, {'EXISTS', key}, {'HLEN', key},
    {'HSCAN', key, 0}, {'HGET', key, ''}, {'HEXISTS', key, ''}, {'HGETALL', key}, {'HDEL', key, ''},
    {'LINDEX', key, 0}, {'LLEN', key}, {'LRANGE', key, 0, 0}, {'LREM', key, 0, ''}, {'LPOP', key},
    {'ZADD', key, 'XX', 1, ''}, {'ZREM', key, ''}, {'ZSCORE', key, ''}, {'ZCARD', key},
    {'PUBSUB', 'NUMSUB', channel},
  })
  -- They would make a key.
  asked = {
    {'HSET', key, '', ''}, {'RPUSH', key, ''}, {'ZINCRBY', key, 0, ''}, {'INCR', key},
    {'UNSUBSCRIBE'},
  }
else
  try({
    {'TIME'}, {'PTTL', key}, {'PEXPIRE', key, 1}, {'ZADD', key, 'XX', 1, ''}, {'ZREM', key, ''},
    {'ZRANGE', key, 0, 0}, {'ZSCORE', key, ''}, {'ZCOUNT', key, 0, 0},
    {'ZRANGEBYSCORE', key, 0, 0}, {'PUBSUB', 'NUMSUB', channel},
  })
end
for _, call in ipairs(tried) do
  local reply = redis.pcall(unpack(call))
  if type(reply) == 'table' and reply.err then add(call, reply.err) end
end
for _, call in ipairs(may_ask and asked or {}) do
  known, may = pcall(may_ask, unpack(call))
  if not known then
    add(call, 'ERR unknown command')
  elseif not may then
    add(call, 'NOPERM no permissions to run the command')
  end
end
return replies

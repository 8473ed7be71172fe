-- ARGV: owner, lease ms, first lease ms, fenced 0|1, mode barge|respect|join, channel prefix, queue TTL ms.
-- Reply: {1, token or ''} granted; {0, PTTL of the holder, queued 0|1} busy.
local owner = ARGV[1]
local member = ARGV[4] .. ':' .. ARGV[3] .. ':' .. owner
local holder = redis.call('GET', KEYS[1])
local mine = holder == owner
if not holder then
  mine = true
  while ARGV[5] ~= 'barge' do
    local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
    if not first or first == member then break end
    redis.call('ZREM', KEYS[2], first)
    if grant(first, ARGV[6]) then
      mine = false
      break
    end
  end
end
if mine then
  local token = ''
  if ARGV[4] == '1' then
    token = mint()
    if not token then return redis.error_reply('WRONGTYPE the fence counter is not a number') end
  end
  -- A repeat never makes the owner's hold shorter.
  if holder ~= owner or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
    redis.call('SET', KEYS[1], owner, 'PX', ARGV[2])
  end
  if token ~= '' then redis.call('SET', KEYS[3], token, 'PX', FENCE_TTL) end
  redis.pcall('ZREM', KEYS[2], member)
  return {1, token}
end
local queued = redis.call('ZSCORE', KEYS[2], member)
if ARGV[5] == 'join' then
  if not queued then
    local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or '0'
    redis.call('ZADD', KEYS[2], last + 1, member)
    queued = true
  end
  redis.call('PEXPIRE', KEYS[2], ARGV[7])
end
return {0, redis.call('PTTL', KEYS[1]), queued and 1 or 0}

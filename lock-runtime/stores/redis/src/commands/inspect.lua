-- Reply: {value or nil, PTTL, places in the queue, number of holders, permits taken, permits that
-- there are}. Of several holders, the one whose lease ends last. O(log n), and O(1) for each share
-- that has expired.
local at = names(1)
local holder, waiting = redis.pcall('GET', at.lock), redis.call('ZCOUNT', at.queue, 0, '(' .. HEARD)
if type(holder) ~= 'table' then
  local holders = holder and 1 or 0
  return {holder and shown(holder), redis.call('PTTL', at.lock), waiting, holders, 0, 0}
end
local time = now()
local used, of = redis.pcall('ZSCORE', at.lock, 'used'), redis.pcall('ZSCORE', at.lock, 'of')
if type(used) ~= 'string' or type(of) ~= 'string' then return not_a_lock(at, holder) end
local live = '(' .. string.format('%.0f', time)
local holders = redis.call('ZCOUNT', at.lock, live, '+inf')
if holders == 0 then return {false, -2, waiting, 0, 0, 0} end
local taken = -used
for _, member in ipairs(redis.call('ZRANGEBYSCORE', at.lock, '(0', time)) do
  taken = taken - string.match(member, ':(%d+)$')
end
local last = redis.call('ZREVRANGE', at.lock, 0, 0, 'WITHSCORES')
return {shown(last[1]), math.ceil((last[2] - time) / 1000), waiting, holders, taken, -of}

-- Reply: {value or nil, PTTL, places in the queue, number of holders}. Of several holders, the one
-- whose lease ends last. O(log n).
local at = names(1)
local holder, waiting = redis.pcall('GET', at.lock), redis.call('ZCOUNT', at.queue, 0, '(' .. HEARD)
if type(holder) ~= 'table' then
  return {holder, redis.call('PTTL', at.lock), waiting, holder and 1 or 0}
end
local time = now()
if type(redis.pcall('ZSCORE', at.lock, 'used')) ~= 'string' then
  return not_a_lock(at)
end
local holders = redis.call('ZCOUNT', at.lock, '(' .. string.format('%.0f', time), '+inf')
if holders == 0 then return {false, -2, waiting, 0} end
local last = redis.call('ZREVRANGE', at.lock, 0, 0, 'WITHSCORES')
return {last[1], math.ceil((last[2] - time) / 1000), waiting, holders}

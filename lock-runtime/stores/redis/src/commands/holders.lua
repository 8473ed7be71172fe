-- Reply: the values of all holders, up to a thousand. O(log n + holders).
local at = names(1)
local holder = redis.pcall('GET', at.lock)
if type(holder) ~= 'table' then return {holder and shown(holder) or nil} end
local time, holders = now(), {}
if type(redis.pcall('ZSCORE', at.lock, 'used')) ~= 'string' then
  return not_a_lock(at, holder)
end
local last = redis.call('ZREVRANGE', at.lock, 0, 999, 'WITHSCORES')
for i = 1, #last, 2 do
  if tonumber(last[i + 1]) > time then holders[#holders + 1] = shown(last[i]) end
end
return holders

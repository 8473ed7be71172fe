-- ARGV: lease ms, fenced 0|1, mode barge|respect, and the owner of each lock. Exclusive locks only.
-- Reply: {1, token or '' for each} granted; {0} busy; {2, number of the lock} it is something else. O(locks).
local lease, held, tokens = tonumber(ARGV[1]), {}, {1}
for i = 4, #ARGV do
  local at = names(i - 3)
  local holder = redis.pcall('GET', at.lock)
  if type(holder) == 'table' then return {2, i - 3} end
  held[i] = holder == ARGV[i]
  if holder and not held[i] then return {0} end
  if not held[i] and ARGV[3] == 'respect' and redis.pcall('ZCARD', at.queue) ~= 0 then return {0} end
  tokens[i - 2] = ''
  if ARGV[2] == '1' then
    tokens[i - 2] = mint(at)
    if not tokens[i - 2] then return {2, i - 3} end
  end
end
for i = 4, #ARGV do
  local at = names(i - 3)
  if not held[i] then
    redis.call('SET', at.lock, ARGV[i], 'PX', lease)
  elseif redis.call('PTTL', at.lock) < lease then
    redis.call('PEXPIRE', at.lock, lease)
  end
  if tokens[i - 2] ~= '' then keep_token(at, tokens[i - 2]) end
end
return tokens

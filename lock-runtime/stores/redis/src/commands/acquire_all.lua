-- ARGV: lease ms, tokens to reserve for each lock, mode barge|respect, channel prefix, and the
-- owner of each lock. Exclusive locks only.
-- Reply: {1, token or '' for each} granted; {0, number of the lock} busy; {2, number of the lock}
-- that lock is of another kind or type.
-- O(locks), and once for each hold that expired and each waiter that gets its turn.
local lease, reserve, time, held, tokens = tonumber(ARGV[1]), tonumber(ARGV[2]), now(), {}, {1}

-- What a later version has stored is told as such, and what was denied too.
local function conflict(i, error)
  return string.find(error.err, '^WRONGTYPE') and {2, i} or error
end

for i = 1, #KEYS / 3 do
  local at, owner = names(i), ARGV[4 + i]
  local state = state_of(at, time)
  if state.err then return conflict(i, state) end
  local other_kind = state.shared and state.used > 0
  -- A free lock belongs to its waiters, if they still wait.
  local mine, denied = true, nil
  if ARGV[3] == 'respect' and state.used == 0 then
    mine, denied = hand_over(at, state, ARGV[4], time)
  end
  settle(at, state)
  if denied then return conflict(i, denied) end
  if other_kind then return {2, i} end
  held[i] = state.holder == owner
  if (state.used > 0 or not mine) and not held[i] then return {0, i} end
  tokens[i + 1] = ''
  if reserve > 0 then
    tokens[i + 1] = mint(at, reserve)
    if not tokens[i + 1] then return conflict(i, wrong_counter(at)) end
  end
end
for i = 1, #KEYS / 3 do
  local at = names(i)
  if not held[i] then
    redis.call('SET', at.lock, ARGV[4 + i], 'PX', lease)
  elseif redis.call('PTTL', at.lock) < lease then
    redis.call('PEXPIRE', at.lock, lease)
  end
  if tokens[i + 1] ~= '' then keep_tokens(at, tokens[i + 1], reserve) end
end
return tokens

-- ARGV: channel prefix, and for each lock: owner, permits (0 exclusive), ms to keep the key. If all
-- are exclusive and no key is kept, only the owners.
-- Reply: for each lock 1 released, 0 not held; plus 2 if more waiters can have their turn now. For
-- one lock, the reply may come without a list around it.
-- O(1) for each lock, and for each hold that expired or waiter that gets its turn.
local time, denied = now(), nil
local function end_hold(i)
  local at, owner, permits, keep = names(i), ARGV[i + 1], 0, 0
  if not is_plain then
    owner, permits, keep = ARGV[3 * i - 1], tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1])
  end
  local state, held = state_of(at, time), nil
  held, permits = has(at, state, owner, permits)
  if held then
    -- Needs no free memory. After a script's first write, neither do the other commands.
    leave(at, state, owner, permits)
    -- The value names no owner any more, so a renewal under way can't extend it.
    if keep > 0 then
      local nobody = owner .. ':kept'
      local kept, how_many = has(at, state, nobody, permits)
      if kept then leave(at, state, nobody, how_many) end
      enter(at, state, nobody, permits, state.of, keep, time)
    end
  end
  if is_denied(state) then denied = state end
  if not state.err then
    if not state.holder then hand_over(at, state, ARGV[1], time) end
    settle(at, state)
  end
  return (held and 1 or 0) + (state.rest or 0)
end
for i = 1, #KEYS / 3 do replies[i] = replies[i] or end_hold(i) end
return denied or replies

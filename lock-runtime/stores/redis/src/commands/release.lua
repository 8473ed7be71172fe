-- ARGV: channel prefix, and for each lock: owner, permits (0 exclusive), ms to keep the key. Of one exclusive lock that is
-- not kept, only its owner.
-- Reply: for each 1 released, 0 not held, and 2 more if others wait for their turn still; of one lock it may come without a list around it. O(1) for each lock, and for each hold that ended or waiter that gets its turn.
local time, replies = now(), {}
for i = 1, #KEYS / 3 do
  local at, owner, permits, keep = names(i), ARGV[3 * i - 1], tonumber(ARGV[3 * i] or 0), tonumber(ARGV[3 * i + 1] or 0)
  local state, held = state_of(at, time), nil
  held, permits = held_by(at, state, owner, permits)
  if held then
    -- This needs no free memory, and after it what follows does not either.
    leave(at, state, owner, permits)
    -- Nobody's any more, so that a renewal under way can't make it longer.
    if keep > 0 then
      local nobody = owner .. ':kept'
      local kept, how_many = held_by(at, state, nobody, permits)
      if kept then leave(at, state, nobody, how_many) end
      enter(at, state, nobody, permits, state.of, keep, time)
    end
  end
  if not state.err then
    if not state.holder then hand_over(at, state, ARGV[1], time) end
    settle(at, state)
  end
  replies[i] = (held and 1 or 0) + (state.rest or 0)
end
return replies

-- Takes a lock as RLock, RFencedLock and RSpinLock keep it, or RFairLock with its queue.
-- KEYS: lock, token counter, queue, its timeouts. ARGV: field, lease ms, '1' for a token, channel,
-- field that ends first or '' (then others go first if more than the next number hear of it), that
-- number, '' or for a fair lock 'try' or 'join', the head of the queue that nobody hears for or ''.
-- Reply: {1, token or ''}; or {0, PTTL, holder or '', 1 if queued or 2 to let others go first, head
-- of the queue that nobody hears for}.
local lock, counter, queue, timeouts = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local me, lease, fair = ARGV[1], tonumber(ARGV[2]), ARGV[7]
local holder, none = holder_of(lock)
if none then return none end
if ARGV[3] == '1' then
  local last = redis.pcall('GET', counter)
  if type(last) == 'table' then return last end
  if last and not string.find(last, '^%d+$') then return conflict('no token counter') end
end
if holder and holder == ARGV[5] then
  redis.call('DEL', lock)
  holder = false
  if tell_free(ARGV[4], queue, timeouts) > tonumber(ARGV[6]) then return {0, -2, '', 2, ''} end
end

local time, silent = now(), ''
if fair ~= '' and holder ~= me then
  for _, helper in ipairs({{'LLEN', queue}, {'ZCARD', timeouts}}) do
    local size = redis.pcall(helper[1], helper[2])
    if type(size) == 'table' then return size end
  end
  local first, denied = first_in_queue(queue, timeouts, time)
  if denied then return denied end
  if not holder and first and first ~= me then
    -- A client that waits listens. One that has died does so no longer.
    if redis.call('PUBSUB', 'NUMSUB', ARGV[4] .. ':' .. first)[2] == 0 then
      if first == ARGV[8] then
        redis.call('LPOP', queue)
        redis.call('ZREM', timeouts, first)
        first = first_in_queue(queue, timeouts, time)
      else
        silent = first
      end
    elseif fair == 'join' then
      -- Nobody says that a lease is over, and who looks may stand behind another of its process.
      publish(ARGV[4] .. ':' .. first, '0')
    end
  end
  local is_turn = not holder and (not first or first == me)
  if not is_turn then
    local queued = 0
    if fair == 'join' then
      -- When a place gets the lock, Redisson takes its own wait, 5 min by default, off the ends of
      -- all others. So each place ends 5 min after the one before it. The first one ends in 5 s:
      -- its client asks each second, and then moves the ends of all of its places.
      queued = 1
      local client, before, is_there = string.sub(me, 1, 38), nil, false
      local places = redis.call('LRANGE', queue, 0, -1)
      for _, place in ipairs(places) do is_there = is_there or place == me end
      if not is_there then
        redis.call('RPUSH', queue, me)
        places[#places + 1] = me
      end
      for _, place in ipairs(places) do
        local ends = redis.call('ZSCORE', timeouts, place)
        if string.sub(place, 1, 38) == client then
          local last = before and math.max(before, time) + 300000 or time + 5000
          if place ~= me and before then last = math.max(last, tonumber(ends or 0)) end
          ends = string.format('%.0f', last)
          redis.call('ZADD', timeouts, ends, place)
        end
        before = tonumber(ends or before)
      end
    end
    local rest = holder and redis.call('PTTL', lock) or -2
    return {0, rest, holder or '', queued, silent}
  end
elseif holder and holder ~= me then
  return {0, redis.call('PTTL', lock), holder, 0, ''}
end

if holder == me then
  -- A repeat of what was carried out.
  redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), lease))
else
  redis.call('HSET', lock, me, 1)
  redis.call('PEXPIRE', lock, lease)
end
if fair ~= '' then
  redis.call('LREM', queue, 0, me)
  redis.call('ZREM', timeouts, me)
  -- The first place's 5 min count from the end of this lease. Else each turn would add 5 min.
  local first = redis.call('LINDEX', queue, 0)
  local ends = first and redis.call('ZSCORE', timeouts, first)
  local over = ends and tonumber(ends) - (time + lease + 300000) or 0
  if over > 0 then
    for _, place in ipairs(redis.call('LRANGE', queue, 0, -1)) do
      redis.call('ZINCRBY', timeouts, string.format('%.0f', -over), place)
    end
  end
end
if ARGV[3] ~= '1' then return {1, ''} end
return {1, string.format('%.0f', redis.call('INCR', counter))}

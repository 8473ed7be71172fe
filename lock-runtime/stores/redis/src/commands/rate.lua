-- Generic cell rate algorithm. KEYS: bucket. ARGV: interval ns, burst, tokens, wait ns.
-- Reply: {1, delay ns, tokens left} taken; {0, ns until the tokens can be taken without a wait, 0}
-- nothing taken. O(1).
-- A bucket is `at:turn:debt`. `at` is the server's time in µs. Counted from then, `turn` is ns
-- until the last taker passes, and `debt` is ns until the bucket is full. As differences, all
-- numbers are whole and below 2^53.
local interval, tokens, wait = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4])
local window = interval * tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function store(turn, debt)
  -- Expires when the bucket is full. The server's clock for TTLs may be 2 ms behind its TIME.
  redis.call('SET', KEYS[1], string.format('%.0f:%.0f:%.0f', now, turn, debt),
    'PX', string.format('%.0f', math.ceil(debt / 1000000) + 2))
end

local turn, debt, set_back = 0, 0, false
local known = redis.call('GET', KEYS[1])
if known then
  local at
  at, turn, debt = string.match(known, '^(%d+):(%d+):(%d+)$')
  at, turn, debt = tonumber(at), tonumber(turn), tonumber(debt)
  if not at or turn > 9007199254740991 or debt > 9007199254740991 then
    return unreadable(known, 'the bucket of the rate limiter is something else')
  end
  -- If the clock was set back, the bucket would stay empty for that long. Count from now instead.
  set_back = at > now
  local elapsed = math.max(0, now - at) * 1000
  -- Another rate may have been in force. At worst, the bucket was empty when the last taker passed.
  debt = math.max(0, math.min(debt, turn + window) - elapsed)
  turn = math.max(0, turn - elapsed)
end
local after = debt + interval * tokens
local delay = math.max(0, after - window)
if delay > wait then
  if set_back then store(turn, debt) end
  return {0, delay, 0}
end
if tokens > 0 then store(math.max(turn, delay), after) end
return {1, delay, math.floor(math.max(0, window - after) / interval)}

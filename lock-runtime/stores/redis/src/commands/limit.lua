-- An exact limit: the same as `PassLog` of lock_store::rules. KEYS: log. ARGV: window µs, limit,
-- tokens, wait µs, µs in which passes share a line. Reply: {1, delay µs, tokens left} taken; {0, µs
-- until the tokens can be taken without a wait, 0} nothing taken. A call looks at the lines that
-- are over, and at those whose end it has to wait for. A log is `at:first:last:total:lines`. `at`
-- is the server's time in µs when tokens were last taken; `first` and `last` are the times of the
-- first and the last line, `total` has the tokens of all. A line is `,<µs since the line before>`,
-- and `*<tokens>` if it is not one.
local window, limit, tokens = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local wait, share = tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local at, first, last, total, lines = now, 0, 0, 0, ''

local function store()
  -- Expires when the last line is over. The server's clock for TTLs may be 2 ms behind its TIME.
  redis.call('SET', KEYS[1],
    string.format('%.0f:%.0f:%.0f:%.0f:', now, first, last, total) .. lines,
    'PX', string.format('%.0f', math.ceil((math.max(last, now) + window - now) / 1000) + 2))
end

local known = redis.call('GET', KEYS[1])
if known then
  at, first, last, total, lines = string.match(known, '^(%d+):(%d+):(%d+):(%d+):([%d,*]*)$')
  if not at then return unreadable(known, 'the log of the rate limiter is something else') end
end
-- If the clock was set back, all would be refused for that long. Count from now instead.
local set_back = math.max(0, at - now)
first, last = first - set_back, last - set_back

-- The tokens of the line at `from`, the time from it to the next one, and where that begins.
local function line(from)
  local count, behind = string.match(lines, '^,%d+%*?(%d*)()', from)
  local gap = string.match(lines, '^,(%d+)', behind)
  return tonumber(count) or 1, tonumber(gap) or 0, behind
end

local from = 1
while from <= #lines and first <= now - window do
  local count, gap, behind = line(from)
  total, from = total - count, behind
  first = first + gap
end
lines = string.sub(lines, from)

local turn, missing = math.max(now, last), total + tokens - limit
local passes, over = 1, first
while missing > 0 and passes <= #lines do
  local count, gap, behind = line(passes)
  missing, passes = missing - count, behind
  if missing <= 0 then turn = math.max(turn, over + window) end
  over = over + gap
end
local delay = turn - now
if delay > wait then
  if set_back > 0 then store() end
  return {0, delay, 0}
end
if tokens > 0 then
  local head, gap, count = string.match(lines, '^(.*),(%d+)%*?(%d*)$')
  local several = head and head ~= ''
  if head and (last == turn or several and turn - (last - gap) <= share) then
    gap, count, lines = gap + turn - last, (tonumber(count) or 1) + tokens, head
  else
    if not head then first = turn end
    gap, count = head and turn - last or 0, tokens
  end
  lines = lines .. string.format(',%.0f', gap) .. (count == 1 and '' or '*' .. count)
  last, total = turn, total + tokens
  store()
end
return {1, delay, delay > 0 and 0 or math.max(0, limit - total)}

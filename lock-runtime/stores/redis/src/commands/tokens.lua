-- Shared by the scripts of locks: the server's time in microseconds, and fencing tokens.
local FENCE_TTL = '86400000'

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- The last token given; nil if the counter is something else. Accept digits only: Lua reads `nan`
-- as a number, which is neither above nor below any other.
local function last_token(at)
  local last = redis.pcall('GET', at.fence) or '0'
  return type(last) == 'string' and string.match(last, '^%d+$') and tonumber(last) or nil
end

-- The first of this many tokens, above every earlier token even if the counter was lost. nil if the
-- counter is something else.
local function mint(at, tokens)
  local last = last_token(at)
  if not last or last + tokens > 9007199254740991 then return nil end
  return string.format('%.0f', math.max(last + 1, now()))
end

local function keep_tokens(at, first, tokens)
  redis.call('SET', at.fence, string.format('%.0f', first + tokens - 1), 'PX', FENCE_TTL)
end


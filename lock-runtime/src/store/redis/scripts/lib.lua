-- Shared by the scripts that grant. KEYS: lock, queue, fence counter.
local FENCE_TTL = 86400000

-- A token above every earlier one, also after the counter was lost. nil if the counter is something else.
local function mint()
  local last = redis.pcall('GET', KEYS[3])
  if type(last) == 'table' then return nil end
  last = tonumber(last or '0')
  if not last or last < 0 or last >= 9007199254740991 then return nil end
  local time = redis.call('TIME')
  return string.format('%.0f', math.max(last + 1, time[1] * 1000000 + time[2]))
end

-- Gives the lock to one waiter. False if its client does not listen any more.
local function grant(member, channels)
  local fenced, first_lease, owner, client = string.match(member, '^([01]):(%d+):((%x+)%-%x+)$')
  if not owner then return false end
  local token = ''
  if fenced == '1' then
    token = mint()
    if not token then return false end
  end
  redis.call('SET', KEYS[1], owner, 'PX', first_lease)
  if token ~= '' then redis.call('SET', KEYS[3], token, 'PX', FENCE_TTL) end
  -- An error (no permission for the channel) is not "nobody listens": the waiter finds its grant when it looks again.
  return redis.pcall('PUBLISH', channels .. client, owner .. ' ' .. token) ~= 0
end

-- Gives the lock to the first in the queue who listens. False if there is none.
local function hand_over(channels)
  while true do
    local popped = redis.pcall('ZPOPMIN', KEYS[2])
    if popped.err or not popped[1] then return false end
    if grant(popped[1], channels) then return true end
  end
end

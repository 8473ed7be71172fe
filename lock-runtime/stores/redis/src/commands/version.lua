-- Shared by the scripts. What version 1 stores has no mark. What a later version stores in another
-- form says so, where version 1 looks: a text begins with `v<version>:`, a sorted set has no `used`
-- and has `version` with that score, a hash has the fields `generation` and `version`. A later
-- queue, or list of a latch's waiters, has another name.
--
-- The error for a value that can't be read: of a later version, or something else.
local function unreadable(value, otherwise)
  local version = type(value) == 'string' and string.match(string.sub(value, 1, 32), '^v(%d+):')
  if not version then return redis.error_reply('WRONGTYPE ' .. otherwise) end
  return redis.error_reply('LOCKVERSION the key is stored in version ' .. version
    .. ', and this lock-runtime knows version 1')
end

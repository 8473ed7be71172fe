-- The common case of release.lua, before the rest of it costs anything: one exclusive lock that nobody waits for.
if #KEYS == 3 and ARGV[3] == '0' and ARGV[4] == '0' and redis.pcall('GET', KEYS[1]) == ARGV[2] then
  local waiters = redis.pcall('ZRANGE', KEYS[2], 0, 0)
  if not waiters.err and not waiters[1] then
    redis.call('DEL', KEYS[1])
    return {1}
  end
end


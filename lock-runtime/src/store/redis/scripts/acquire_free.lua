-- The common case of acquire.lua, before the rest of it costs anything: a free lock, asked for once with a fencing token.
if ARGV[5] == 'barge' and ARGV[4] ~= '0' and ARGV[8] == '0' and ARGV[10] == '' and not redis.pcall('GET', KEYS[1]) then
  local at, tokens = {fence = KEYS[3]}, tonumber(ARGV[4])
  local token = mint(at, tokens)
  if token then
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
    keep_tokens(at, token, tokens)
    return {1, token}
  end
end


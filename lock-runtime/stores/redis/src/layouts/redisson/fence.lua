-- Gives an existing hold a token.
-- KEYS: lock, token counter. ARGV: field.
-- Reply: the token, or '' if it is gone.
local held = redis.pcall('HEXISTS', KEYS[1], ARGV[1])
if is_denied(held) then return held end
if held ~= 1 then return '' end
local last = redis.pcall('GET', KEYS[2])
if type(last) == 'table' then return last end
if last and not string.find(last, '^%d+$') then return conflict('no token counter') end
return string.format('%.0f', redis.call('INCR', KEYS[2]))

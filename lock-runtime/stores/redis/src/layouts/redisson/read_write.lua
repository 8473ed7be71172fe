-- Takes a read-write lock as RReadWriteLock keeps it: a hash with `mode`, a field for each reader,
-- and `<holder>:write` for the writer. Each hold of a reader has a key of its own, whose TTL is its
-- lease.
-- KEYS: lock, key of this reader. ARGV: field of a reader, lease ms, 'read' or 'write'.
-- Reply: {1, ''}, or {0, PTTL, holder or '', 0, ''}.
local lock, own, me, lease = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2])
local mode, page = read_write_mode(lock)
if not mode and page then return page end
if not mode and redis.call('EXISTS', lock) == 1 then return conflict('no RReadWriteLock') end
local field = ARGV[3] == 'write' and me .. ':write' or me
local is_mine = mode and redis.call('HEXISTS', lock, field) == 1
if mode and not is_mine and (mode == 'write' or ARGV[3] == 'write') then
  local holder = ''
  local meant = mode == 'write' and ':write$' or '.'
  for at = 1, #page, 2 do
    if page[at] ~= 'mode' and string.find(page[at], meant) then
      holder = page[at]
      break
    end
  end
  return {0, redis.call('PTTL', lock), holder, 0, ''}
end
if not mode then redis.call('HSET', lock, 'mode', ARGV[3]) end
redis.call('HSET', lock, field, 1)
if ARGV[3] == 'read' then
  redis.call('SET', own, 1, 'PX', math.max(redis.call('PTTL', own), lease))
end
redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), lease))
return {1, ''}

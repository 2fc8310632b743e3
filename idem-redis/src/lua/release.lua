-- Frees the holder's key for any request. Holder and fence are remembered (laws L1, L3), for as
-- long as the record would have been.
--
-- ARGV: attempt id

if not phase or holder ~= ARGV[1] or phase == COMPLETED then
  return 'lost'
end
if phase == PENDING then
  local released = struct.pack('>BBc16I8I4I8', VERSION, watched and RELEASED + WATCHED or RELEASED,
    holder, fence, attempts, retain_until)
  redis.call('SET', KEYS[1], released, 'PXAT', math.ceil(retain_until / 1000))
  if watched then
    -- Only a hint: where the user may not publish, nothing is undone for it.
    redis.pcall('PUBLISH', KEYS[1], '')
  end
end
return 'ok'

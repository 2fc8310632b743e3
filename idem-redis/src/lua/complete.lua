-- Turns the holder's pending record into a completed one, kept for `retention` from now. The first
-- completion stands (law L6): a repeat is fine and changes nothing.
--
-- ARGV: attempt id, payload, retention (us)

if not phase or holder ~= ARGV[1] or phase == RELEASED then
  return 'lost'
end
if phase == PENDING then
  local keep_until = now + ARGV[3]
  local head = struct.pack(ROW, VERSION, COMPLETED, holder, fence, attempts, keep_until,
    fingerprint, #ARGV[2])
  redis.call('SET', KEYS[1], head .. ARGV[2], 'PXAT', math.ceil(keep_until / 1000))
  if watched then
    -- Only a hint: where the user may not publish, nothing is undone for it.
    redis.pcall('PUBLISH', KEYS[1], '')
  end
end
return 'ok'

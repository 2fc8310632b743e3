-- Turns the holder's pending record into a completed one, kept for `retention` from now. The first
-- completion stands (law L6): a repeat is fine and changes nothing.
--
-- ARGV: attempt id, payload, retention (us)

local row, damage = read()
if damage then
  return damage
end
if not row or row.holder ~= ARGV[1] or row.phase == RELEASED then
  return LOST
end
if row.phase == PENDING then
  local payload, watched = ARGV[2], row.watched
  row.phase, row.watched, row.retain_until = COMPLETED, false, now + tonumber(ARGV[3])
  write(packed(row) .. struct.pack('>c32I8', row.fingerprint, #payload) .. payload,
    row.retain_until)
  row.watched = watched
  hint(row)
end
return {'ok'}

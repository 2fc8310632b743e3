-- Frees the holder's key for any request. Holder and fence are remembered (laws L1, L3), for as
-- long as the record would have been.
--
-- ARGV: attempt id

local row, damage = read()
if damage then
  return damage
end
if not row or row.holder ~= ARGV[1] or row.phase == COMPLETED then
  return LOST
end
if row.phase == PENDING then
  row.phase = RELEASED
  write(packed(row), row.retain_until)
  hint(row)
end
return {'ok'}

-- Moves the end of a held lease to `duration` from now, never earlier than it was; zero ends it
-- now. Answers with what is left of it (us).
--
-- ARGV: attempt id, duration (us)

local duration = tonumber(ARGV[2])

local row, damage = read()
if damage then
  return damage
end
if not row or row.holder ~= ARGV[1] or row.phase ~= PENDING then
  return LOST
end

local was = row.lease_until
if duration == 0 then
  row.lease_until = math.min(was, now)
else
  row.lease_until = math.max(was, now + duration)
end
-- An abandoned record is kept for the attempt's retention, counted from the end of the lease.
row.retain_until = row.lease_until + math.max(0, row.retain_until - was)
write(pending(row), row.retain_until)
if duration == 0 then
  hint(row)
end
return {'left', text(math.max(0, row.lease_until - now))}

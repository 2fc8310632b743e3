-- Moves the end of a held lease to `duration` from now, never earlier than it was; zero ends it
-- now. Answers with what is left of it (us).
--
-- ARGV: attempt id, duration (us)

if phase ~= PENDING or holder ~= ARGV[1] then
  return 'lost'
end

local duration, lease_until = tonumber(ARGV[2]), nil
if duration == 0 then
  lease_until = math.min(last, now)
else
  lease_until = math.max(last, now + duration)
end
-- An abandoned record is kept for the attempt's retention, counted from the end of the lease.
local keep_until = lease_until + math.max(0, retain_until - last)
local moved = struct.pack(ROW, VERSION, watched and PENDING + WATCHED or PENDING, holder, fence,
  attempts, keep_until, fingerprint, lease_until)
redis.call('SET', KEYS[1], moved, 'PXAT', math.ceil(keep_until / 1000))
if watched and duration == 0 then
  -- Only a hint: where the user may not publish, nothing is undone for it.
  redis.pcall('PUBLISH', KEYS[1], '')
end
return string.format('left %.0f', math.max(0, lease_until - now))

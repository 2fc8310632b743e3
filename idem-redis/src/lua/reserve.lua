-- Takes the key for an attempt if it is free, and answers with the record that is there afterwards
-- and the time. No shebang: a server that is full still answers whoever needs no room, and refuses
-- at the write.
--
-- ARGV: attempt id, fingerprint, lease (us), retention (us), whether it may take over ('1')

local holder, fingerprint = ARGV[1], ARGV[2]
local lease, retention, may_take_over = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == '1'

local row, damage = read()
if damage then
  return damage
end

local attempts, fence, watched = 1, now, false
if row then
  if row.phase == RELEASED then
    if row.holder == holder then
      -- A repeat that arrives after its own release must not hold the key for nobody (law L1).
      return LOST
    end
  else
    local free = row.phase == PENDING
      and row.holder ~= holder
      and row.lease_until <= now
      and row.fingerprint == fingerprint
      and may_take_over
    if not free then
      local bytes = row.bytes
      if row.phase == COMPLETED and row.fingerprint ~= fingerprint then
        -- Another request's answer: not to be seen (an empty payload stands in for it).
        bytes = string.sub(bytes, 1, 70) .. struct.pack('>I8', 0)
      elseif row.watched then
        row.watched = false
        bytes = pending(row)
      end
      return {'row', bytes, text(now)}
    end
    attempts = math.min(row.attempts + 1, 4294967295)
  end
  if row.fence >= EXACT - 1 then
    return corrupt('the fence cannot grow')
  end
  -- The clock may have been turned back, or two leases may fall into one microsecond (law L3).
  fence = math.max(now, row.fence + 1)
  watched = row.watched
end

local taken = {
  phase = PENDING,
  holder = holder,
  fence = fence,
  attempts = attempts,
  fingerprint = fingerprint,
  lease_until = now + lease,
  retain_until = now + lease + retention,
  watched = watched,
}
write(pending(taken), taken.retain_until)
taken.watched = false
return {'row', pending(taken), text(now)}

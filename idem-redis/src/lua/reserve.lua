-- Takes the key for an attempt if it is free, and answers with the record that is there afterwards.
-- In the answer, a lease ends at what is left of it. No shebang: a server that is full still
-- answers whoever needs no room, and refuses at the write.
--
-- ARGV: attempt id, fingerprint, lease (us), retention (us), whether it may take over ('1')

local EXACT = 9007199254740992 -- 2^53

local next_attempts = 1
if phase == COMPLETED then
  if fingerprint == ARGV[2] then
    return bytes
  end
  -- Another request's answer: not to be seen (an empty payload stands in for it).
  return struct.pack('>c70I8', bytes, 0)
elseif phase == PENDING then
  local free = holder ~= ARGV[1]
    and last <= now
    and fingerprint == ARGV[2]
    and ARGV[5] == '1'
  if not free then
    return struct.pack(ROW, VERSION, PENDING, holder, fence, attempts, retain_until, fingerprint,
      math.max(0, last - now))
  end
  next_attempts = math.min(attempts + 1, 4294967295)
elseif phase == RELEASED and holder == ARGV[1] then
  -- A repeat that arrives after its own release must not hold the key for nobody (law L1).
  return 'lost'
end

local next_fence = now
if phase then
  if fence >= EXACT - 1 then
    return 'corrupt the fence cannot grow'
  end
  -- The clock may have been turned back, or two leases may fall into one microsecond (law L3).
  next_fence = math.max(now, fence + 1)
end

-- The key expires with the record's retention, never with the lease: an abandoned record has to be
-- recognised.
local lease_until = now + ARGV[3]
local keep_until = lease_until + ARGV[4]
local taken = struct.pack(ROW, VERSION, watched and PENDING + WATCHED or PENDING, ARGV[1],
  next_fence, next_attempts, keep_until, ARGV[2], lease_until)
redis.call('SET', KEYS[1], taken, 'PXAT', math.ceil(keep_until / 1000))
if watched then
  -- The mark is for the scripts alone.
  taken = struct.pack('>BBc76', VERSION, PENDING, string.sub(taken, 3))
end
return struct.pack('>c70I8', taken, ARGV[3])

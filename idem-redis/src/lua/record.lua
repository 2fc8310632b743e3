-- What every verb begins with: the clock, and the record under KEYS[1].
--
-- A record is one string, big-endian, the bytes of `idem_core::model::Row`:
--
--   1      format version      19..26  fence            39..70  fingerprint (not if released)
--   2      phase               27..30  attempts         71..78  end of the lease (pending), or
--   3..18  holder              31..38  retained until           length of the payload (completed)
--                                                       79..    payload (completed)
--
-- with one addition: bit 7 of the phase says that somebody waits for the key (see watch.lua).
-- Times and fences are microseconds since 1970. A Lua number is a double, exact to 2^53: the
-- year 2255. They are never written with `tostring`, which keeps 14 digits only.

local VERSION = 1
local PENDING, COMPLETED, RELEASED = 1, 2, 3
local WATCHED = 128
local EXACT = 9007199254740992 -- 2^53
local LOST = {'lost'}

-- The server's clock, and nobody else's (law L7).
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function text(number)
  return string.format('%.0f', number)
end

local function corrupt(why)
  return {'corrupt', why}
end

-- The record, or nil if there is none; and if it cannot be read, what to answer (law L8). A value
-- that is not a string raises WRONGTYPE, which comes to the same.
local function read()
  local bytes = redis.call('GET', KEYS[1])
  if not bytes then
    return nil
  end
  if string.byte(bytes, 1) ~= VERSION then
    return nil, corrupt('unknown row format')
  end
  if #bytes < 38 then
    return nil, corrupt('the row is cut short')
  end
  local row = {bytes = bytes}
  local _, phase
  _, phase, row.holder, row.fence, row.attempts, row.retain_until =
    struct.unpack('>BBc16I8I4I8', bytes)
  row.watched = phase >= WATCHED
  row.phase = phase % WATCHED
  local size
  if row.phase == RELEASED then
    size = 38
  elseif row.phase ~= PENDING and row.phase ~= COMPLETED then
    return nil, corrupt('unknown row phase')
  elseif #bytes < 78 then
    return nil, corrupt('the row is cut short')
  else
    local last
    row.fingerprint, last = struct.unpack('>c32I8', bytes, 39)
    if row.phase == PENDING then
      row.lease_until = last
      size = 78
    else
      size = 78 + last
    end
  end
  if #bytes ~= size then
    return nil, corrupt('the row is cut short or too long')
  end
  -- The server forgets it within a millisecond of this moment; a clock that was turned back, or a
  -- replica that waits for its master's word, must not make a difference.
  if row.retain_until <= now then
    return nil
  end
  return row
end

local function packed(row)
  local phase = row.phase
  if row.watched then
    phase = phase + WATCHED
  end
  return struct.pack('>BBc16I8I4I8', VERSION, phase, row.holder, row.fence, row.attempts,
    row.retain_until)
end

-- A pending record as bytes.
local function pending(row)
  return packed(row) .. struct.pack('>c32I8', row.fingerprint, row.lease_until)
end

-- Value and expiry in one command. The key expires with the record's retention, never with the
-- lease: an abandoned record has to be recognised.
local function write(bytes, retain_until)
  redis.call('SET', KEYS[1], bytes, 'PXAT', text(math.ceil(retain_until / 1000)))
end

-- Tells whoever waits. Only a hint: where the user may not publish, nothing is undone for it.
local function hint(row)
  if row.watched then
    redis.pcall('PUBLISH', KEYS[1], '')
  end
end

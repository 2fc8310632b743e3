-- What every verb begins with: the clock, and the record under KEYS[1], if there is one.
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
-- year 2255. `tostring` and `..` keep 14 digits of one only; `redis.call` writes all of them.
--
-- An answer is one string: a record, which begins with its version, or a word. No functions and
-- no tables here: they would be made anew by every call.

local VERSION, PENDING, COMPLETED, RELEASED = 1, 1, 2, 3
local WATCHED = 128
local ROW = '>BBc16I8I4I8c32I8'

-- The server's clock, and nobody else's (law L7).
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- The record. Without one, the phase is nil. What cannot be read is answered so (law L8); a value
-- that is not a string raises WRONGTYPE, which comes to the same.
local _, phase, holder, fence, attempts, retain_until, fingerprint, last
local watched = false
local bytes = redis.call('GET', KEYS[1])
if bytes then
  local size, whole = #bytes, nil
  if string.byte(bytes) ~= VERSION then
    return 'corrupt unknown row format'
  end
  if size >= 78 then
    _, phase, holder, fence, attempts, retain_until, fingerprint, last =
      struct.unpack(ROW, bytes)
  elseif size >= 38 then
    _, phase, holder, fence, attempts, retain_until =
      struct.unpack('>BBc16I8I4I8', bytes)
  else
    return 'corrupt the row is cut short'
  end
  if phase >= WATCHED then
    phase, watched = phase - WATCHED, true
  end
  if phase == COMPLETED then
    whole = 78 + (last or 0)
  elseif phase == PENDING then
    whole = 78
  elseif phase == RELEASED then
    whole = 38
  else
    return 'corrupt unknown row phase'
  end
  if size ~= whole then
    return 'corrupt the row is cut short or too long'
  end
  -- The server forgets it within a millisecond of this moment; a clock that was turned back, or a
  -- replica that waits for its master's word, must not make a difference.
  if retain_until <= now then
    phase, watched = nil, false
  end
end

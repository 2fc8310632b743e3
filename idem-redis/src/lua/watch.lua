-- Notes in the record that somebody waits for the key, so that its next change is published. The
-- mark outlives a release and a takeover and ends with the completion; without it, nothing is ever
-- published. It is one byte in place: neither the record's size nor its expiry changes.

if phase and phase ~= COMPLETED and not watched then
  redis.call('SETRANGE', KEYS[1], 1, string.char(phase + WATCHED))
end
return 'ok'

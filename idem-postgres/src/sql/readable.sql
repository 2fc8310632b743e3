-- Whether the row `r` is one that this version wrote (law L8). Cheap: no payload is fetched for it.
(r.format = 1
    AND octet_length(r.holder) = 16
    AND r.fence >= 0
    AND r.attempts >= 1
    AND isfinite(r.lease_until)
    AND CASE r.phase
        WHEN 'pending' THEN octet_length(r.fingerprint) = 32 AND r.payload IS NULL
        WHEN 'completed' THEN octet_length(r.fingerprint) = 32
                              AND octet_length(r.payload) = r.payload_bytes
        WHEN 'released' THEN r.fingerprint IS NULL AND r.payload IS NULL
    END) IS TRUE

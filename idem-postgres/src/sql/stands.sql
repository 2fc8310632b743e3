-- Whether the row `r` stands in the way of the attempt at the moment `now` (law L2). What cannot be
-- read does. $2 is the attempt's fingerprint, $3 its id, $6 whether it may take over.
(NOT {readable} OR r.retain_until > now AND CASE r.phase
    WHEN 'completed' THEN true
    -- An attempt that has released its key does not take it again.
    WHEN 'released' THEN r.holder = $3
    -- Its own reservation an attempt does not take over, it is shown.
    ELSE r.holder = $3 OR r.lease_until > now OR r.fingerprint <> $2 OR NOT $6
END)

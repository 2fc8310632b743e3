-- What the row `r` is to the attempt at the moment `now` (law L2): 'free', or what stands in its
-- way. $2 is the attempt's fingerprint, $3 its id, $6 whether it may take over.
CASE
    WHEN NOT {readable} THEN 'corrupt'
    WHEN r.retain_until <= now THEN 'free'
    WHEN r.phase = 'completed' THEN 'completed'
    -- An attempt that has released its key does not take it again.
    WHEN r.phase = 'released' THEN CASE WHEN r.holder = $3 THEN 'lost' ELSE 'free' END
    -- Its own reservation an attempt does not take over, it is shown.
    WHEN r.holder = $3 OR r.lease_until > now OR r.fingerprint <> $2 OR NOT $6 THEN 'pending'
    ELSE 'free'
END

-- Whether the row `r` is the attempt's reservation (law L4). $1 is the key, $2 the attempt's id.
r.key = $1 AND r.holder = $2 AND r.phase = 'pending'
    AND r.retain_until > clock_timestamp() AND {readable}

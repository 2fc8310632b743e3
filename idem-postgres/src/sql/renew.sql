-- Moves the end of a held lease, never to an earlier moment, or ends it now; or says why there is
-- none to move. Always one row.
--
-- $1 key · $2 attempt · $3 duration in microseconds, zero to end the lease · $4 the key's bell
WITH moved AS (
    UPDATE {table} AS r
    SET (lease_until, retain_until) = (
        SELECT moves.until,
               -- An abandoned row is kept for its retention, counted from the lease's end.
               moves.until + greatest(r.retain_until - r.lease_until, interval '0')
        FROM (SELECT clock_timestamp() AS now) AS clock
        CROSS JOIN LATERAL (
            SELECT CASE WHEN $3 = 0 THEN least(r.lease_until, now)
                        ELSE greatest(r.lease_until, now + $3 * interval '1 microsecond')
                   END AS until
        ) AS moves
    )
    WHERE {held}
    RETURNING 'done' AS answer,
              CASE WHEN $3 = 0 THEN NOT pg_try_advisory_xact_lock($4) ELSE false END AS awaited,
              greatest((extract(epoch FROM lease_until - clock_timestamp()) * 1000000)::bigint, 0)
                  AS left_us
)
SELECT coalesce(moved.answer, {why_not}) AS answer, coalesce(moved.awaited, false) AS awaited, left_us
-- A lease that is held is renewed: it leads to nothing that would be there already.
FROM (SELECT NULL::text) AS verb (leads_to) LEFT JOIN moved ON true

-- Turns the holder's pending row into a completed one, or says why there is none to turn. Always one
-- row.
--
-- $1 key · $2 attempt · $3 payload · $4 retention in microseconds · $5 the key's bell · $6 the
-- door, or null
WITH moved AS (
    UPDATE {table} AS r
    SET phase = 'completed', payload = $3, payload_bytes = octet_length($3),
        retain_until = clock_timestamp() + $4 * interval '1 microsecond'
    WHERE {held}
    RETURNING 'done' AS answer,
              -- The commit is not seen yet. Whoever comes to wait finds the bell taken until it is.
              NOT pg_try_advisory_xact_lock($5) AS awaited,
              -- Nobody else's transaction takes the key over while this one is open.
              CASE WHEN $6::bigint IS NOT NULL THEN pg_try_advisory_xact_lock($6) END AS door
)
SELECT coalesce(moved.answer, {why_not}) AS answer, coalesce(moved.awaited, false) AS awaited
FROM (SELECT 'completed') AS verb (leads_to) LEFT JOIN moved ON true

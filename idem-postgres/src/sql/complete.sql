-- Turns the holder's pending row into a completed one; the first completion stands. Always one row.
--
-- $1 key · $2 attempt · $3 payload · $4 retention in microseconds · $5 the key's bell · $6 the
-- door, or null
WITH seen AS MATERIALIZED (
    -- A repeat is answered from the snapshot.
    SELECT FROM {table} AS r
    WHERE r.key = $1 AND r.holder = $2 AND r.phase = 'completed'
      AND r.retain_until > clock_timestamp() AND {readable}
), moved AS (
    UPDATE {table} AS r
    SET (phase, payload, payload_bytes, retain_until) = (
        SELECT becomes.*
        FROM (
            SELECT 'completed', $3, octet_length($3),
                   clock_timestamp() + $4 * interval '1 microsecond'
            WHERE r.phase = 'pending'
            UNION ALL
            -- A repeat at the same time was faster: its row is written back as it is.
            SELECT r.phase, r.payload, r.payload_bytes, r.retain_until
            WHERE r.phase = 'completed'
        ) AS becomes
    )
    WHERE NOT EXISTS (SELECT FROM seen)
      AND r.key = $1 AND r.holder = $2 AND r.phase IN ('pending', 'completed')
      AND r.retain_until > clock_timestamp() AND {readable}
    RETURNING 1
)
SELECT 'done' AS answer,
       -- The commit is not seen yet. Whoever comes to wait finds the bell taken until it is.
       NOT pg_try_advisory_xact_lock($5) AS awaited,
       -- Nobody else's transaction takes the key over while this one is open.
       CASE WHEN $6::bigint IS NOT NULL THEN pg_try_advisory_xact_lock($6) END AS door
FROM moved
UNION ALL
SELECT 'done', false, NULL FROM seen
UNION ALL
SELECT {why_not}, false, NULL
WHERE NOT EXISTS (SELECT FROM seen) AND NOT EXISTS (SELECT FROM moved)

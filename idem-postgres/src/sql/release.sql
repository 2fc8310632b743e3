-- Frees the holder's key, and remembers its fence and its holder. Always one row.
--
-- $1 key · $2 attempt · $3 the key's bell
WITH seen AS MATERIALIZED (
    -- A repeat is answered from the snapshot.
    SELECT FROM {table} AS r
    WHERE r.key = $1 AND r.holder = $2 AND r.phase = 'released'
      AND r.retain_until > clock_timestamp() AND {readable}
), moved AS (
    UPDATE {table} AS r
    SET phase = 'released', fingerprint = NULL
    WHERE NOT EXISTS (SELECT FROM seen)
      AND r.key = $1 AND r.holder = $2 AND r.phase IN ('pending', 'released')
      AND r.retain_until > clock_timestamp() AND {readable}
    RETURNING 1
)
SELECT 'done' AS answer, NOT pg_try_advisory_xact_lock($3) AS awaited
FROM moved
UNION ALL
SELECT 'done', false FROM seen
UNION ALL
SELECT {why_not}, false
WHERE NOT EXISTS (SELECT FROM seen) AND NOT EXISTS (SELECT FROM moved)

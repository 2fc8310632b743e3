-- Frees the holder's key, and remembers its fence and its holder; or says why there is none to free.
-- Always one row.
--
-- $1 key · $2 attempt · $3 the key's bell
WITH moved AS (
    UPDATE {table} AS r
    SET phase = 'released', fingerprint = NULL
    WHERE {held}
    RETURNING 'done' AS answer, NOT pg_try_advisory_xact_lock($3) AS awaited
)
SELECT coalesce(moved.answer, {why_not}) AS answer, coalesce(moved.awaited, false) AS awaited
FROM (SELECT 'released') AS verb (leads_to) LEFT JOIN moved ON true

-- Frees the holder's key, and remembers its fence and its holder. Always one row; of nulls if there
-- is none to free, and `why_not.sql` says why.
--
-- $1 key · $2 attempt · $3 the key's bell
WITH moved AS (
    UPDATE {table} AS r
    SET phase = 'released', fingerprint = NULL
    WHERE {held}
    RETURNING 'done' AS answer, NOT pg_try_advisory_xact_lock($3) AS awaited
)
SELECT moved.* FROM (SELECT) AS always LEFT JOIN moved ON true

-- Deletes rows past their retention from one stretch of the table. Always one row.
--
-- $1 and $2 the first and the last page · $3 how many rows at most · $4 the purge's own number
WITH alone AS MATERIALIZED (
    -- One runner at a time, however many instances there are.
    SELECT pg_try_advisory_xact_lock($4) AS alone
), expired AS MATERIALIZED (
    SELECT r.ctid
    FROM alone CROSS JOIN {table} AS r
    WHERE alone.alone
      AND r.ctid >= format('(%s,0)', $1::bigint)::tid
      AND r.ctid < format('(%s,0)', $2::bigint + 1)::tid
      AND r.retain_until <= clock_timestamp()
      -- What cannot be read is not known to be past anything (law L8).
      AND {readable}
    LIMIT $3
    -- Whoever holds a row is about to renew, complete or take it: it is left alone.
    FOR UPDATE OF r SKIP LOCKED
), deleted AS (
    DELETE FROM {table} AS r
    WHERE r.ctid = ANY (ARRAY (SELECT ctid FROM expired))
      AND r.retain_until <= clock_timestamp()
    RETURNING 1
)
SELECT alone.alone,
       (SELECT count(*) FROM deleted) AS deleted,
       pg_relation_size('{table}'::regclass) / current_setting('block_size')::bigint AS pages
FROM alone

-- Deletes rows past their retention from one stretch of the table. Always one row.
--
-- $1 the first page · $2 the first page beyond · $3 how many rows at most
WITH expired AS MATERIALIZED (
    SELECT r.ctid
    FROM {table} AS r
    WHERE r.ctid >= format('(%s,0)', $1::bigint)::tid
      AND r.ctid < format('(%s,0)', $2::bigint)::tid
      AND r.retain_until <= clock_timestamp()
      -- What cannot be read is not known to be past anything (law L8).
      AND {readable}
    LIMIT $3
    -- Whoever holds a row is about to take it: it is left alone.
    FOR UPDATE SKIP LOCKED
), deleted AS (
    DELETE FROM {table} AS r
    WHERE r.ctid = ANY (ARRAY (SELECT ctid FROM expired))
      AND r.retain_until <= clock_timestamp()
    RETURNING 1
)
SELECT (SELECT count(*) FROM deleted) AS deleted,
       pg_relation_size('{table}'::regclass) / current_setting('block_size')::bigint AS pages

-- Inserts the first reservation of a key, made at the moment `now`. Its parameters are those of
-- `reserve.sql`.
INSERT INTO {table} AS r
    (key, operation, tenant, format, phase, fingerprint, holder, fence, attempts,
     lease_until, retain_until)
SELECT $1, $8, $9, 1, 'pending', $2, $3, (extract(epoch FROM now) * 1000000)::bigint, 1,
       now + $4 * interval '1 microsecond', now + ($4 + $5) * interval '1 microsecond'

-- What the statements need and the table $1 does not have, in one array.
SELECT coalesce(array_agg(what), '{}') FROM (
SELECT 'a column ' || needed.name || ' ' || needed.type AS what
FROM (VALUES
    ('fence', 'bigint'), ('lease_until', 'timestamp with time zone'),
    ('retain_until', 'timestamp with time zone'), ('attempts', 'integer'),
    ('payload_bytes', 'integer'), ('format', 'smallint'), ('phase', 'text'), ('key', 'bytea'),
    ('holder', 'bytea'), ('fingerprint', 'bytea'), ('operation', 'text'), ('tenant', 'text'),
    ('payload', 'bytea')
) AS needed (name, type)
WHERE NOT EXISTS (
    SELECT FROM pg_attribute AS a
    WHERE a.attrelid = to_regclass($1) AND a.attname = needed.name AND NOT a.attisdropped
      AND format_type(a.atttypid, NULL) = needed.type
)
UNION ALL
-- Without it two attempts could both be the first.
SELECT 'a unique index on key'
WHERE NOT EXISTS (
    SELECT FROM pg_index AS i
    JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
    WHERE i.indrelid = to_regclass($1) AND a.attname = 'key'
      AND i.indisunique AND i.indisvalid AND i.indnkeyatts = 1 AND i.indpred IS NULL
)
) AS missing

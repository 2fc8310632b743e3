-- Version 1 of the schema. {table} and {versions} stand for the two tables' quoted names.
--
-- The whole file is one transaction. It fails if another instance was faster: the tables are there
-- then, and whoever came second looks again.

CREATE TABLE {versions} (
    -- What this file made.
    version     integer PRIMARY KEY,
    -- The oldest version of the schema whose code can work with it.
    works_from  integer NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT now()
);
INSERT INTO {versions} (version, works_from) VALUES (1, 1);

-- Columns of a fixed width come first, the wide ones before the narrow: nothing is lost to padding.
CREATE TABLE {table} (
    fence          bigint      NOT NULL,
    lease_until    timestamptz NOT NULL,
    retain_until   timestamptz NOT NULL,
    attempts       integer     NOT NULL,
    payload_bytes  integer,
    format         smallint    NOT NULL,
    phase          text        NOT NULL,
    key            bytea       NOT NULL PRIMARY KEY,
    holder         bytea       NOT NULL,
    fingerprint    bytea,
    operation      text        NOT NULL,
    tenant         text,
    payload        bytea
) WITH (
    -- A record is written twice: `complete` finds room for its version of the row on the same
    -- page, and since it changes no indexed column, it is a heap-only (HOT) update.
    fillfactor = 70,
    -- A table of a million records is vacuumed after 20,000 changes, not after 200,000.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.05
);

-- There is no index on `retain_until`, nor on `phase`: `complete` changes both, and would no longer
-- be a heap-only update. A purge walks the table instead.

COMMENT ON TABLE {table} IS 'Idempotency keys: one row is one key in its scope.';
COMMENT ON COLUMN {table}.key IS 'SHA-256 of operation, tenant and key.';
COMMENT ON COLUMN {table}.operation IS 'What the key is for; a NUL is shown as U+2400.';
COMMENT ON COLUMN {table}.tenant IS 'Whose the key is, or null; a NUL is shown as U+2400.';
COMMENT ON COLUMN {table}.phase IS
    'pending (abandoned, once lease_until has passed), completed, or released (the key is free).';
COMMENT ON COLUMN {table}.fingerprint IS 'What the request is; null once released.';
COMMENT ON COLUMN {table}.holder IS 'The attempt that holds, completed or released the key.';
COMMENT ON COLUMN {table}.fence IS 'Grows with every lease of the key.';
COMMENT ON COLUMN {table}.attempts IS 'How many attempts have held the reservation.';
COMMENT ON COLUMN {table}.lease_until IS 'When the lease of a pending record ends, or ended.';
COMMENT ON COLUMN {table}.retain_until IS 'When the row counts as absent, and may be purged.';
COMMENT ON COLUMN {table}.payload IS 'What the request was completed with.';
COMMENT ON COLUMN {table}.payload_bytes IS 'Its length, so that a payload cut short is noticed.';
COMMENT ON COLUMN {table}.format IS 'The version of what a row means.';

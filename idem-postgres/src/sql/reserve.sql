-- Takes the key for the attempt if there is no row of it, and otherwise answers with what is there.
-- Always one row; 'free' if the row is there for the taking, or came just now: `reserve_locked.sql`
-- judges it under its lock then.
--
-- A new key and a replay are most of what is asked. The server sets up all of a statement each time
-- it runs, whichever part is needed, so this one has no more than these two take.
--
-- $1 key · $2 fingerprint · $3 attempt · $4 lease and $5 retention, in microseconds · $6 whether it
-- may take over · $7 the door, or null · $8 operation · $9 tenant, or null
WITH seen AS MATERIALIZED (
    -- Whoever loses is answered from the snapshot: no row is locked, no WAL written, and nobody
    -- waits for a transaction that has the row open.
    SELECT {judged} AS answer, r.fingerprint, r.holder, r.fence, r.attempts,
           greatest((extract(epoch FROM r.lease_until - now) * 1000000)::bigint, 0) AS left_us,
           -- Another request is not shown the answer, and it is not even fetched.
           CASE WHEN r.fingerprint = $2 THEN r.payload END AS payload
    FROM (SELECT clock_timestamp() AS now) AS clock CROSS JOIN {table} AS r
    WHERE r.key = $1
), written AS (
    {first}
    FROM (SELECT clock_timestamp() AS now) AS clock
    WHERE CASE
        WHEN EXISTS (SELECT FROM seen) THEN false
        WHEN $7::bigint IS NULL THEN true
        -- Inside a transaction of the application's, the row stays unseen until the commit; it is
        -- this that a rival finds, without waiting.
        ELSE pg_try_advisory_xact_lock($7)
    END
    ON CONFLICT (key) DO NOTHING
    RETURNING phase, fingerprint, holder, fence, attempts, $4, payload
)
SELECT * FROM seen
UNION ALL
SELECT * FROM written
UNION ALL
SELECT 'free', NULL, NULL, NULL, NULL, NULL, NULL
WHERE NOT EXISTS (SELECT FROM seen) AND NOT EXISTS (SELECT FROM written)

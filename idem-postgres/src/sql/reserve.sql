-- Takes the key for the attempt if it is free, and answers with the row that is there then. Always
-- one row; 'again' if what is there came, or changed, while the statement ran: it has written
-- nothing then, and is to be sent once more.
--
-- $1 key · $2 fingerprint · $3 attempt · $4 lease and $5 retention, in microseconds · $6 whether it
-- may take over · $7 the door, or null · $8 operation · $9 tenant, or null
WITH seen AS MATERIALIZED (
    -- Whoever loses is answered from the snapshot: no row is locked, no WAL written, and nobody
    -- waits for a transaction that has the row open.
    SELECT {judged} AS answer, r.fingerprint, r.holder, r.fence, r.attempts,
           greatest((extract(epoch FROM r.lease_until - now) * 1000000)::bigint, 0) AS left_us,
           -- Another request is not shown the answer, and it is not even fetched.
           CASE WHEN r.fingerprint = $2 THEN r.payload END AS payload,
           r.ctid AS version,
           -- Past its retention a row counts as absent.
           r.retain_until > now AS kept
    FROM (SELECT clock_timestamp() AS now) AS clock CROSS JOIN {table} AS r
    WHERE r.key = $1
), written AS (
    INSERT INTO {table} AS r
        (key, operation, tenant, format, phase, fingerprint, holder, fence, attempts,
         lease_until, retain_until)
    SELECT $1, $8, $9, 1, 'pending', $2, $3,
           -- Without a row there is no fence before it, and `greatest` passes over a null.
           greatest((extract(epoch FROM now) * 1000000)::bigint, fence + 1),
           -- Of a released row, which has no fingerprint, the next attempt is the first again.
           CASE WHEN kept AND fingerprint IS NOT NULL THEN least(attempts, 2147483646) + 1 ELSE 1 END,
           now + $4 * interval '1 microsecond', now + ($4 + $5) * interval '1 microsecond'
    FROM (SELECT clock_timestamp() AS now) AS clock LEFT JOIN seen ON true
    WHERE CASE
        WHEN answer <> 'free' THEN false
        WHEN $7::bigint IS NULL THEN true
        -- Inside a transaction of the application's, the row stays unseen until the commit; it is
        -- this that a rival finds, without waiting.
        ELSE pg_try_advisory_xact_lock($7)
    END
    -- Under the row's lock: what was free stays free for as long as it is the same version of it.
    ON CONFLICT (key) DO UPDATE SET
        phase = excluded.phase, fingerprint = excluded.fingerprint, holder = excluded.holder,
        fence = excluded.fence, attempts = excluded.attempts, lease_until = excluded.lease_until,
        retain_until = excluded.retain_until, payload = NULL, payload_bytes = NULL
    WHERE r.ctid = (SELECT version FROM seen)
    RETURNING phase, fingerprint, holder, fence, attempts,
              -- Less than was asked for, if another transaction had to end first.
              greatest((extract(epoch FROM lease_until - clock_timestamp()) * 1000000)::bigint, 0),
              payload
)
SELECT answer, fingerprint, holder, fence, attempts, left_us, payload
FROM seen WHERE answer <> 'free'
UNION ALL
SELECT * FROM written
UNION ALL
SELECT CASE WHEN $7::bigint IS NULL OR pg_try_advisory_xact_lock($7) THEN 'again' ELSE 'busy' END,
       NULL, NULL, NULL, NULL, NULL, NULL
WHERE NOT EXISTS (SELECT FROM seen WHERE answer <> 'free') AND NOT EXISTS (SELECT FROM written)

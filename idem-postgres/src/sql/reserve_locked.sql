-- Takes the key for the attempt if it is free, judging its row under its lock, and answers with
-- whichever row is there afterwards. Always one row.
--
-- $1 key · $2 fingerprint · $3 attempt · $4 lease and $5 retention, in microseconds · $6 whether it
-- may take over · $7 the door, or null · $8 operation · $9 tenant, or null
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), seen AS MATERIALIZED (
    -- As in `reserve.sql`: whoever was faster may be there by now.
    SELECT r.phase, r.fingerprint, r.holder, r.fence, r.attempts, r.lease_until, r.payload,
           r.format, r.payload_bytes, clock.now
    FROM clock CROSS JOIN {table} AS r
    WHERE r.key = $1 AND {judged} <> 'free'
), door AS MATERIALIZED (
    -- Inside a transaction of the application's, the row below stays unseen until the commit; it
    -- is this that a rival finds, without waiting. Not for a reservation that commits by itself.
    SELECT CASE WHEN $7::bigint IS NULL THEN true ELSE pg_try_advisory_xact_lock($7) END AS open
    WHERE NOT EXISTS (SELECT FROM seen)
), written AS (
    {first}
    FROM clock CROSS JOIN door
    WHERE door.open
    -- The row may have come, or changed, since the snapshot: here it is locked, and judged again
    -- by a clock that is read now. The loser of this race writes the row back as it is.
    ON CONFLICT (key) DO UPDATE SET
        (phase, fingerprint, holder, fence, attempts, lease_until, retain_until, payload,
         payload_bytes) = (
            SELECT becomes.*
            FROM (SELECT clock_timestamp() AS now) AS clock
            CROSS JOIN LATERAL (SELECT {judged} <> 'free' AS stands) AS judged
            CROSS JOIN LATERAL (
                SELECT r.phase, r.fingerprint, r.holder, r.fence, r.attempts, r.lease_until,
                       r.retain_until, r.payload, r.payload_bytes
                WHERE judged.stands
                UNION ALL
                SELECT 'pending', $2, $3,
                       greatest((extract(epoch FROM now) * 1000000)::bigint,
                                -- Unless the row is past its retention, so that all is new.
                                CASE WHEN r.retain_until > now THEN r.fence + 1 ELSE 0 END),
                       CASE WHEN r.retain_until > now AND r.phase <> 'released'
                            THEN least(r.attempts, 2147483646) + 1 ELSE 1 END,
                       now + $4 * interval '1 microsecond',
                       now + ($4 + $5) * interval '1 microsecond',
                       NULL, NULL
                WHERE NOT judged.stands
            ) AS becomes
        )
    RETURNING phase, fingerprint, holder, fence, attempts, lease_until, payload, format,
              payload_bytes, clock_timestamp() AS now
)
SELECT CASE WHEN NOT {readable} THEN 'corrupt' WHEN r.phase = 'released' THEN 'lost'
            ELSE r.phase END AS answer,
       r.fingerprint, r.holder, r.fence, r.attempts,
       greatest((extract(epoch FROM r.lease_until - r.now) * 1000000)::bigint, 0) AS left_us,
       -- Another request is not shown the answer, and it is not even fetched.
       CASE WHEN r.fingerprint = $2 THEN r.payload END AS payload
FROM (SELECT * FROM seen UNION ALL SELECT * FROM written) AS r
UNION ALL
SELECT 'busy', NULL, NULL, NULL, NULL, NULL, NULL
FROM door WHERE NOT door.open

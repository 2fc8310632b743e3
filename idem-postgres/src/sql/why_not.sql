-- Why a verb of a lease had no reservation to work on: it is done already (law L1), the key's row
-- cannot be read, or it is not the holder's. Always one row, read from the snapshot.
--
-- $1 key · $2 attempt; {became} is the phase that the verb leads to
SELECT CASE
           WHEN r.key IS NULL THEN 'lost'
           WHEN NOT {readable} THEN 'corrupt'
           WHEN r.holder = $2 AND r.phase = '{became}' AND r.retain_until > clock_timestamp() THEN 'done'
           ELSE 'lost'
       END AS answer,
       false AS awaited
FROM (SELECT) AS always LEFT JOIN {table} AS r ON r.key = $1

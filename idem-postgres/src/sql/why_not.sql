-- Why the key $1 had no reservation of the attempt $2 to work on: it is where the verb leads to
-- already (law L1), the key's row cannot be read, or it is not the attempt's. If the snapshot has
-- the reservation all the same, it has changed since: 'again', and the statement is sent once more.
(SELECT CASE
            WHEN r.key IS NULL THEN 'lost'
            WHEN NOT {readable} THEN 'corrupt'
            WHEN r.holder <> $2 OR r.retain_until <= clock_timestamp() THEN 'lost'
            WHEN r.phase = verb.leads_to THEN 'done'
            WHEN r.phase = 'pending' THEN 'again'
            ELSE 'lost'
        END
 FROM (SELECT) AS always LEFT JOIN {table} AS r ON r.key = $1)

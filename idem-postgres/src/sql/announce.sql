-- Tells those who wait for the key to look again, if anybody does. After the change is committed,
-- in a transaction of its own: a commit that notifies waits for every other one that does.
--
-- $1 the channel · $2 the key's digest in hex · $3 the key's bell
SELECT pg_notify($1, $2)
-- Nothing is lost with the notice of a server that crashes now, so nobody waits for its disk.
FROM (SELECT set_config('synchronous_commit', 'off', true)) AS unsynced
WHERE NOT pg_try_advisory_xact_lock($3)

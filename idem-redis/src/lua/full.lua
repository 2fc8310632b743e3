#!lua flags=allow-oom
-- For verbs that take no more room than there was: a full server must not keep a holder from
-- renewing or from giving up its key.

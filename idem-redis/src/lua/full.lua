#!lua flags=allow-oom
-- For verbs that take no more room than there was: a full server must not keep a holder from
-- renewing, from ending or from giving up its key, nor anybody from taking over an abandoned one.

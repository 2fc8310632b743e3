-- Why a verb of a lease did nothing: the key's row cannot be read, or is not the holder's.
CASE WHEN EXISTS (SELECT FROM {table} AS r WHERE r.key = $1 AND NOT {readable})
     THEN 'corrupt' ELSE 'lost' END

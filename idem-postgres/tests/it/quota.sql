-- At most {records} rows that are still kept; one more is refused as if the disk were full.
CREATE FUNCTION bounded.quota() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM bounded.idem_record WHERE key = NEW.key)
       AND (SELECT count(*) FROM bounded.idem_record WHERE retain_until > clock_timestamp())
           >= {records} THEN
        RAISE EXCEPTION 'the quota is used up' USING ERRCODE = 'disk_full';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER quota BEFORE INSERT ON bounded.idem_record
    FOR EACH ROW EXECUTE FUNCTION bounded.quota();

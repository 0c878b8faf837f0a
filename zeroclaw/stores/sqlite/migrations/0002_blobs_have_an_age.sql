-- When a blob was last put, for deletion by age. Existing blobs count from this migration.
ALTER TABLE blob ADD COLUMN put_at INTEGER NOT NULL DEFAULT 0;

UPDATE blob SET put_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000000;

-- Covers the query for old blobs: in the table, put_at is stored after the body, pages away.
CREATE INDEX blob_by_put_at ON blob (put_at, digest);

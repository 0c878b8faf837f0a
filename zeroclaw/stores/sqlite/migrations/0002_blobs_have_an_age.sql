-- When a blob was last put, so that it can go by its age. What is there already is as old as this.
ALTER TABLE blob ADD COLUMN put_at INTEGER NOT NULL DEFAULT 0;

UPDATE blob SET put_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000000;

-- Holds all that a look for old blobs needs: put_at stands behind the body, pages away.
CREATE INDEX blob_by_put_at ON blob (put_at, digest);

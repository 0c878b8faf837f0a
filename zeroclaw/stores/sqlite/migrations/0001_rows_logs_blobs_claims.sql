-- The rows, logs, blobs and claims of the store's contract. Times are microseconds since 1970, UTC.

-- The body is in its owner's encoding; the other columns can be searched. A rowid table, because
-- bodies are too large for the inner pages of a WITHOUT ROWID one.
CREATE TABLE stored_row (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    conversation TEXT,
    state TEXT NOT NULL,
    place TEXT NOT NULL,
    due_at INTEGER,
    body BLOB NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT;

CREATE INDEX stored_row_by_conversation ON stored_row (kind, conversation, key)
    WHERE conversation IS NOT NULL;
CREATE INDEX stored_row_by_state ON stored_row (kind, state, key) WHERE state <> '';
CREATE INDEX stored_row_by_place ON stored_row (kind, place, key) WHERE place <> '';
CREATE INDEX stored_row_by_due_at ON stored_row (kind, due_at) WHERE due_at IS NOT NULL;

CREATE TABLE log_entry (
    log TEXT NOT NULL,
    stream TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (log, stream, sequence)
) STRICT;

CREATE TABLE claim (
    key TEXT NOT NULL PRIMARY KEY,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX claim_by_until ON claim (until);

CREATE TABLE blob (
    digest TEXT NOT NULL PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;

-- One row; grows with each opening, so that no fence outlives its process (see `Fences`).
CREATE TABLE boot (
    epoch INTEGER NOT NULL
) STRICT;

INSERT INTO boot (epoch) VALUES (0);

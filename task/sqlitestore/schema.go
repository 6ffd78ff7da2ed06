package sqlitestore

import (
	"fmt"
	"strings"
)

// schemas makes of a file of each version one of the next; the first begins with nothing.
// The version, in the file's user_version, is for what older processes could not live with.
// A column more is none of that: statements name their columns, so what a process does not
// know stays as it is.
//
// Times are Unix milliseconds, NULL if they are zero. What may be large comes last, because
// SQLite reads a row up to the column it needs. What is to be found by time has an index, so
// that nothing is scanned.
var schemas = []string{`
CREATE TABLE uses (
	call     TEXT    NOT NULL PRIMARY KEY,
	round    INTEGER NOT NULL,
	write    BLOB    NOT NULL,
	answers  BLOB    NOT NULL CHECK (length(answers) = 32),
	deadline INTEGER NOT NULL,
	expires  INTEGER NOT NULL,
	done     INTEGER NOT NULL DEFAULT FALSE,
	response BLOB
) STRICT;
CREATE INDEX uses_expires ON uses (expires);
`, `
CREATE TABLE tasks (
	id          TEXT    NOT NULL PRIMARY KEY,
	version     INTEGER NOT NULL,
	shard       INTEGER NOT NULL,
	tool        TEXT    NOT NULL,
	traceparent TEXT    NOT NULL,
	format      INTEGER NOT NULL,
	revision    INTEGER NOT NULL,
	status      TEXT    NOT NULL,
	phase       INTEGER NOT NULL,
	owner       BLOB    NOT NULL CHECK (length(owner) = 32),
	created     INTEGER,
	updated     INTEGER,
	expires     INTEGER,
	poll        INTEGER NOT NULL, -- milliseconds
	message     TEXT    NOT NULL,
	epoch       INTEGER NOT NULL,
	claims      INTEGER NOT NULL,
	worker      TEXT    NOT NULL,
	lease_until INTEGER,
	interrupted INTEGER NOT NULL,
	sends       INTEGER NOT NULL,
	sent        INTEGER,
	wake        INTEGER,
	journal     INTEGER NOT NULL,
	asked       TEXT, -- JSON
	outcome     TEXT  -- JSON
) STRICT;
CREATE INDEX tasks_expires ON tasks (expires) WHERE expires IS NOT NULL;
CREATE INDEX tasks_wake ON tasks (shard, wake) WHERE wake IS NOT NULL;

CREATE TABLE parts (
	task   TEXT    NOT NULL,
	kind   INTEGER NOT NULL,
	number INTEGER NOT NULL, -- of an entry its number, of a question or an outcome its epoch
	name   TEXT    NOT NULL,
	epoch  INTEGER NOT NULL,
	data   BLOB, -- NULL: empty
	PRIMARY KEY (task, kind, number, name)
) STRICT;

-- Tasks whose head is gone, and until when their parts stay.
CREATE TABLE removed (
	task  TEXT    NOT NULL PRIMARY KEY,
	until INTEGER NOT NULL
) STRICT;
CREATE INDEX removed_until ON removed (until);
`}

// schemaFrom makes the present version of an older one.
func schemaFrom(version int) string {
	return strings.Join(schemas[version:], "") + fmt.Sprintf("PRAGMA user_version = %d;", len(schemas))
}

package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// file is the open database. Its statements are prepared once: to parse one takes longer
// than to run most of them.
type file struct {
	db       *sql.DB
	prepared map[string]*sql.Stmt
}

// statements are all that is ever run on a file that is ready.
var statements = []string{
	removeUses, claim, findUse, finish, release, findClaim,
	insertHead, updateHead, findHead, due, recent,
	putPart, findEntries, findParts, findRecord,
	removeHeads, noteRemoved, removeParts, dropEmpty, dropRemoved, dropParts,
}

func prepare(ctx context.Context, db *sql.DB) (*file, error) {
	f := &file{db, make(map[string]*sql.Stmt, len(statements))}
	for _, query := range statements {
		stmt, err := db.PrepareContext(ctx, query)
		if err != nil {
			return nil, err
		}
		f.prepared[query] = stmt
	}
	return f, nil
}

// runner runs statements on a file, or within a transaction on it.
type runner interface {
	stmt(ctx context.Context, query string) *sql.Stmt
}

func (f *file) stmt(_ context.Context, query string) *sql.Stmt { return f.prepared[query] }

type transaction struct {
	tx   *sql.Tx
	file *file
}

func (t transaction) stmt(ctx context.Context, query string) *sql.Stmt {
	return t.tx.StmtContext(ctx, t.file.prepared[query])
}

// exec runs a statement and reports whether it changed a row.
func exec(ctx context.Context, r runner, query string, args ...any) (changed bool, err error) {
	result, err := r.stmt(ctx, query).ExecContext(ctx, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// one is the row that a query finds.
func one(ctx context.Context, r runner, query string, args ...any) *sql.Row {
	return r.stmt(ctx, query).QueryRowContext(ctx, args...)
}

// each has scan take every row that a query finds.
func each(ctx context.Context, r runner, scan func(row *sql.Rows) error, query string, args ...any) error {
	rows, err := r.stmt(ctx, query).QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// write is a transaction, which stays if run has no error.
func (s *Store) write(ctx context.Context, run func(t transaction) error) error {
	f, err := s.open(ctx)
	if err != nil {
		return err
	}
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := run(transaction{tx, f}); err != nil {
		return err
	}
	return tx.Commit()
}

// placeholders is n more of them.
func placeholders(n int) string { return strings.Repeat(", ?", n) }

// failed says of an error in which method it was.
func failed(ctx context.Context, method string, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		err = ended // of which database/sql may only say that the transaction is over
	}
	return fmt.Errorf("sqlitestore: %s: %w", method, err)
}

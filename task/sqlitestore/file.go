package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
)

// applicationID marks a file as ours: "thaw".
const applicationID = 0x74686177

// openFile opens the database at path, and creates it if nothing is there.
func openFile(ctx context.Context, path string) (*file, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := create(ctx, path); err != nil {
			return nil, fmt.Errorf("create %s: %w", path, err)
		}
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("open %s: this is no regular file; the store has to be one", path)
	}
	db, err := connect(path, "rw")
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := check(ctx, db); err != nil {
		db.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	f, err := prepare(ctx, db)
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return f, nil
}

// connect is the database at path, not yet opened. mode is SQLite's: rw, or rwc to create
// the file too.
func connect(path, mode string) (*sql.DB, error) {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	dsn := url.URL{Scheme: "file", Path: slashed, RawQuery: url.Values{
		"mode":          {mode},
		"_txlock":       {"immediate"}, // a transaction that began by reading could not wait for the lock
		"_busy_timeout": {"5000"},      // a context ends the wait sooner
		"_synchronous":  {"FULL"},      // nil means durable, also when the power fails
		"_error_rc":     {"1"},         // else messages of other operations are mixed into errors
	}.Encode()}
	connector, err := sqlite.NewConnector(dsn.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	// SQLite has one writer at a time: a second connection would poll for its turn where
	// database/sql hands it over.
	db.SetMaxOpenConns(1)
	return db, nil
}

// check refuses a file that is not ours or of a newer version, and upgrades an older one.
func check(ctx context.Context, db *sql.DB) error {
	var id int64
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return err
	}
	version, err := versionOf(db.QueryRowContext(ctx, fileVersion))
	switch {
	case err != nil:
		return err
	case id != applicationID:
		return errors.New("this file is no task store")
	case version < 1 || version > len(schemas):
		return fmt.Errorf("this task store has schema %d, from another version of thaw; this one knows 1 to %d", version, len(schemas))
	case version < len(schemas):
		return upgrade(ctx, db)
	}
	return nil
}

// upgrade is one transaction, in which the version is read again: another process may have
// been first. Processes of an older version that have the file open go on with the tables
// they know.
func upgrade(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	version, err := versionOf(tx.QueryRowContext(ctx, fileVersion))
	if err != nil {
		return err
	}
	if version < len(schemas) {
		if _, err := tx.ExecContext(ctx, schemaFrom(version)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

const fileVersion = "PRAGMA user_version"

func versionOf(row *sql.Row) (version int, err error) {
	err = row.Scan(&version)
	return version, err
}

// create makes the file ready under another name and links it into place, so that
// processes that race use the same file, none finds it half made, and none has to switch
// it to the write-ahead log, which cannot wait for the others. A process that dies in here
// leaves its own folder behind and nothing else.
func create(ctx context.Context, path string) error {
	if err := checkLog(path); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := createFolder(dir); err != nil {
		return err
	}
	private, err := os.MkdirTemp(dir, filepath.Base(path)+".new-") // mode 0700
	if err != nil {
		return err
	}
	defer os.RemoveAll(private)
	draft := filepath.Join(private, "draft")
	if err := writeSchema(ctx, draft); err != nil {
		return err
	}
	if err := os.Chmod(draft, 0o600); err != nil {
		return err
	}
	if err := os.Link(draft, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// checkLog finds the log of a file that was removed without it: SQLite would write what is
// in it into the new file. The file comes before its log, so a log that was there while the
// file was not belongs to no other process that creates it.
func checkLog(path string) error {
	log := path + "-wal"
	if _, err := os.Lstat(log); err != nil {
		return nil
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("%s is left of a store that is gone; remove it", log)
}

func writeSchema(ctx context.Context, path string) error {
	db, err := connect(path, "rwc")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d;", applicationID)+schemaFrom(0)); err != nil {
		return err
	}
	// The file keeps the mode. It comes last, so that nothing of the schema is in a log
	// beside the file, which stays behind.
	if _, err := db.ExecContext(ctx, "PRAGMA journal_mode = WAL"); err != nil {
		return err
	}
	return db.Close()
}

// createFolder makes dir if it is missing. Only a folder of ours gets a .gitignore: that
// of a user may be a repository.
func createFolder(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o600)
}

package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"

	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

//go:embed schema/*.sql
var schema embed.FS

// step migrates a file from the previous schema version.
type step struct {
	version int
	sql     string
	// oldest is the oldest version whose programs may use the file afterwards. A step that only
	// adds something does not raise it.
	oldest int
}

// steps returns the steps to all schema versions, the oldest first. The first one creates the tables:
// there was no release before it. Version 11 adds the table of charges.
func steps() []step {
	return []step{
		{version: 10, sql: schemaText(10), oldest: 10},
		{version: 11, sql: schemaText(11), oldest: 10},
	}
}

// newest returns the version that the last of the steps leads to.
func newest(steps []step) int { return steps[len(steps)-1].version }

func schemaText(version int) string {
	text, err := schema.ReadFile(fmt.Sprintf("schema/%d.sql", version))
	if err != nil {
		panic("sqlite: " + err.Error())
	}
	return string(text)
}

// migrate runs the steps that the file lacks. It does not change a newer file, and rejects one that
// says so. It does not lock a file that is up to date.
func migrate(ctx context.Context, conn *sql.Conn, steps []step) error {
	version, err := versionOf(ctx, conn, steps)
	if err != nil || version >= newest(steps) {
		return err
	}
	return inTransaction(ctx, conn, nil, func(tx *transaction) error {
		version, err := schemaVersion(tx, steps)
		if err != nil {
			return err
		}
		return upgrade(tx, version, steps)
	})
}

// versionOf is [schemaVersion] in a transaction of its own.
func versionOf(ctx context.Context, conn *sql.Conn, steps []step) (version int, err error) {
	err = inTransaction(ctx, conn, &sql.TxOptions{ReadOnly: true}, func(tx *transaction) error {
		version, err = schemaVersion(tx, steps)
		return err
	})
	return version, err
}

// schemaVersion returns the file's version, 0 for a fresh one. It fails if a program with these steps
// may not use the file.
func schemaVersion(tx *transaction, steps []step) (version int, err error) {
	err = tx.row("PRAGMA user_version").Scan(&version)
	if err != nil || version == 0 {
		return 0, err
	}
	if version < steps[0].version {
		return 0, rules.ErrUnreleased
	}
	return version, permitted(tx, newest(steps))
}

func upgrade(tx *transaction, version int, steps []step) error {
	for _, next := range steps {
		if next.version <= version {
			continue
		}
		// Pragmas take no parameters.
		stamp := fmt.Sprintf("UPDATE meta SET oldest = max(oldest, %d); PRAGMA user_version = %d; "+
			"PRAGMA application_id = %d", next.oldest, next.version, applicationID)
		for _, text := range []string{next.sql, stamp} {
			if err := tx.exec(text); err != nil {
				return fmt.Errorf("schema version %d: %w", next.version, err)
			}
		}
	}
	return nil
}

// permitted returns a [*rules.NewerError] if a program of this version may not use the file. Every write
// calls it, because a newer program may have migrated the file in the meantime.
func permitted(tx *transaction, version int) error {
	var oldest int
	err := tx.row("SELECT oldest FROM meta").Scan(&oldest)
	if errors.Is(err, sql.ErrNoRows) {
		return &damageError{err}
	}
	if err != nil {
		return err
	}
	if oldest > version {
		return &rules.NewerError{Oldest: oldest, Version: version}
	}
	return nil
}

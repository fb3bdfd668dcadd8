package core

import (
	"errors"
	"fmt"
	"strings"

	_ "embed" // the schema
)

// Version is the version of the tables. Nothing was released yet, so there is no way from one
// version to another.
const Version = 22

var (
	// ErrVersion reports tables of another version.
	ErrVersion = errors.New("it is from another version of the program")
	// ErrDamage reports a row that this program cannot have written.
	ErrDamage = errors.New("it contains an invalid row")
	// ErrChanged is returned by a transaction that found a row changed before it could lock it.
	ErrChanged = errors.New("another program changes the session at the same time")
)

// CheckVersion returns an ErrVersion unless this program can use tables of a version.
func CheckVersion(version int) error {
	if version != Version {
		return fmt.Errorf("%w: it has schema version %d, and this one needs %d",
			ErrVersion, version, Version)
	}
	return nil
}

// damaged returns the ErrDamage of a row with which something is wrong.
func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamage, err) }

var errMissingPart = damaged(errors.New("a part of the history is missing"))

//go:embed schema.sql
var schema string

// Schema returns the statements that create the tables, with the words of a database.
func Schema(key, text, bytes string) string {
	return strings.NewReplacer("{key}", key, "{text}", text, "{bytes}", bytes).Replace(schema)
}

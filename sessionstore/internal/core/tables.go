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

// VersionError reports tables of another version.
type VersionError struct{ Version int }

// CheckVersion returns a [*VersionError] unless this program can use tables of a version.
func CheckVersion(version int) error {
	if version != Version {
		return &VersionError{version}
	}
	return nil
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("it has schema version %d, and this program needs %d", e.Version, Version)
}

// DamageError reports a row that this program cannot have written.
type DamageError struct{ Err error }

func (e *DamageError) Error() string { return "it contains an invalid row: " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *DamageError) Unwrap() error { return e.Err }

var errMissingPart = &DamageError{errors.New("a part of the history is missing")}

// ErrChanged is returned by a transaction that found a row changed before it could lock it.
var ErrChanged = errors.New("another program changes the session at the same time")

//go:embed schema.sql
var schema string

// Schema returns the statements that create the tables, with the words of a database.
func Schema(key, text, bytes string) string {
	return strings.NewReplacer("{key}", key, "{text}", text, "{bytes}", bytes).Replace(schema)
}

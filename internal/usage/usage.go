// Package usage has the error for an invalid command line or configuration, with which the program
// exits with status 2.
package usage

import "fmt"

// Error reports an invalid command line or configuration.
type Error struct{ message string }

func (e *Error) Error() string { return e.message }

// Errorf returns an [*Error].
func Errorf(format string, args ...any) error {
	return &Error{message: fmt.Sprintf(format, args...)}
}

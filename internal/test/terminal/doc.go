// Package terminal makes terminals for tests.
package terminal

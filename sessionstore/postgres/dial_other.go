//go:build !linux

package postgres

import "syscall"

// limitLoss leaves it to the system when a connection is lost.
func limitLoss(string, string, syscall.RawConn) error { return nil }

//go:build !linux

package pgtest

import (
	"syscall"
	"testing"
)

func ordinaryUser(testing.TB, string) *syscall.SysProcAttr { return nil }

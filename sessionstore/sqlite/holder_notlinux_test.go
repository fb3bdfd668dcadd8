//go:build !linux

package sqlite_test

import (
	"context"
	"errors"

	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

func holder(context.Context, *sqlite.Store, string) error { return errors.ErrUnsupported }

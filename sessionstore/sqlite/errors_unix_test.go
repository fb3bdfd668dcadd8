//go:build unix

package sqlite_test

import (
	"testing"

	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
)

// For root every directory is writable, so the test runs as an ordinary user.
func TestS4_ReadOnlyDirectoryAsOrdinaryUser(t *testing.T) {
	if !proctest.AsOrdinaryUser(t, "TestS4_ReadOnlyDirectory") {
		TestS4_ReadOnlyDirectory(t)
	}
}

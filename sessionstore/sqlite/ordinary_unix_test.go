//go:build unix

package sqlite_test

import (
	"testing"

	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
)

// For root every directory is writable, so root runs the test as an ordinary user.
func TestS4_AReadOnlyDirectoryOfAnOrdinaryUser(t *testing.T) {
	if !proctest.AsOrdinaryUser(t, "TestS4_AReadOnlyDirectory") {
		TestS4_AReadOnlyDirectory(t)
	}
}

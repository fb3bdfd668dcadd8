//go:build unix

package proctest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

func TestAsOrdinaryUser(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) {
		return
	}
	path := filepath.Join(t.TempDir(), "closed")
	require.NoError(t, os.WriteFile(path, nil, 0))
	_, err := os.ReadFile(path)
	require.ErrorIs(t, err, os.ErrPermission)
}

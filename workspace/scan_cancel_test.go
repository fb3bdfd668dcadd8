package workspace_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// What is left out can take long to tell: a repository may have many rules.
func TestAScanThatEndsJudgesNoMoreEntries(t *testing.T) {
	root := realDir(t)
	for i := range 100 {
		write(t, filepath.Join(root, fmt.Sprint(i)), "")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var judged atomic.Int64
	err := open(t, root).Scan(ctx, ".", workspace.ScanOptions{Leave: func(workspace.Ref, workspace.Entry) bool {
		judged.Add(1)
		cancel()
		return false
	}}, func(*workspace.Folder) func() error { return nil })
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 1, judged.Load())
}

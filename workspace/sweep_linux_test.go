package workspace_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
	"github.com/acp-agent/acp-agent/workspace"
)

// What is not certainly a draft of a process that has ended stays.
//
// Clause E1.
func TestDraftsThatWereLeft(t *testing.T) {
	for what, c := range map[string]struct {
		name, content string
		age           time.Duration
		locked, stays bool
	}{
		"old draft":                     {name: workspace.TemporaryName(), content: "ne", age: 25 * time.Hour},
		"new draft":                     {name: workspace.TemporaryName(), content: "ne", stays: true},
		"old draft of a process":        {name: workspace.TemporaryName(), content: "ne", age: 25 * time.Hour, locked: true, stays: true},
		"what was to change places":     {name: workspace.TemporaryName() + "-", content: "old", age: 25 * time.Hour, stays: true},
		"file with a name that is like": {name: ".acp-agent-notes", content: "x", age: 25 * time.Hour, stays: true},
	} {
		t.Run(what, func(t *testing.T) {
			dir := realDir(t)
			path := filepath.Join(dir, c.name)
			write(t, path, c.content)
			then := time.Now().Add(-c.age)
			require.NoError(t, os.Chtimes(path, then, then))
			if c.locked {
				f, err := os.Open(path)
				require.NoError(t, err)
				defer f.Close()
				require.NoError(t, dirfd.TryLock(f))
			}
			_, err := put(open(t, dir), "f", "one")
			require.NoError(t, err)
			if c.stays {
				require.FileExists(t, path)
			} else {
				require.NoFileExists(t, path)
			}
		})
	}
}

package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// What is not certainly a draft of a process that has ended stays.
//
// Clause E1.
func TestDraftsThatWereLeft(t *testing.T) {
	name := workspace.TemporaryName()
	old, written := workspace.VersionOf([]byte("old")), workspace.VersionOf([]byte("new"))
	for what, c := range map[string]struct {
		name     string
		only     []workspace.Version
		content  string
		lives    bool
		stays    bool
		forgets  bool // the record
		complain bool
	}{
		"unfinished draft":          {name: name, content: "ne", forgets: true},
		"draft":                     {name: name, only: []workspace.Version{old, written}, content: "new", forgets: true},
		"replaced file":             {name: name, only: []workspace.Version{old, written}, content: "old", forgets: true},
		"file that others changed":  {name: name, only: []workspace.Version{old, written}, content: "theirs", stays: true, complain: true},
		"draft of a process":        {name: name, content: "ne", lives: true, stays: true},
		"file that is never ours":   {name: "main.go", content: "x", stays: true, forgets: true},
		"name with a path":          {name: "../" + name, content: "x", stays: true, forgets: true},
		"file that is already gone": {name: name, forgets: true},
	} {
		t.Run(what, func(t *testing.T) {
			dir, kept := realDir(t), filepath.Join(realDir(t), "drafts")
			dir = mkdir(t, filepath.Join(dir, "in"))
			path := filepath.Join(dir, c.name)
			if c.content != "" {
				write(t, path, c.content)
			}
			write(t, filepath.Join(dir, workspace.TemporaryName()), "without a record")
			drafts := workspace.NewDrafts(kept)
			end := drafts.Note(dir, name, c.name, c.only...)
			if !c.lives {
				end()
			} else {
				defer end()
			}
			removed, err := drafts.RemoveLeft()
			require.Equal(t, c.complain, err != nil, "%v", err)
			if c.content != "" && !c.stays {
				require.Equal(t, []string{path}, removed)
				require.NoFileExists(t, path)
			} else {
				require.Empty(t, removed)
			}
			if c.stays {
				require.FileExists(t, path)
			}
			records, err := filepath.Glob(kept + "/*")
			require.NoError(t, err)
			require.Equal(t, c.forgets, len(records) == 0, records)
			others, err := filepath.Glob(dir + "/.acp-agent-*")
			require.NoError(t, err)
			require.NotEmpty(t, others)
		})
	}
}

// A write does not fail because it cannot be recorded, and leaves no record.
//
// Clause E1.
func TestRecordsOfDrafts(t *testing.T) {
	dir, state := realDir(t), realDir(t)
	kept := filepath.Join(state, "a", "drafts")
	ws := openWith(t, workspace.Options{Drafts: workspace.NewDrafts(kept)}, dir)
	for _, content := range []string{"one", "two"} {
		_, err := put(ws, "f", content)
		require.NoError(t, err)
	}
	info, err := os.Stat(kept)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	records, err := os.ReadDir(kept)
	require.NoError(t, err)
	require.Empty(t, records)

	write(t, filepath.Join(state, "file"), "")
	ws = openWith(t, workspace.Options{Drafts: workspace.NewDrafts(filepath.Join(state, "file", "x"))}, dir)
	_, err = put(ws, "f", "three")
	require.NoError(t, err)
	removed, err := workspace.NewDrafts(filepath.Join(state, "none")).RemoveLeft()
	require.NoError(t, err)
	require.Empty(t, removed)
}

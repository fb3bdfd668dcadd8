package discovery_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/workspace"
)

// Each archive in testdata is a tree of files. Lines of its comment prepare the tree, and its file
// "want" is the expected result:
//
//	roots a b         the roots, cwd first
//	link PATH TARGET  makes a symbolic link
//	hex PATH BYTES    makes a file of these bytes
//	size PATH N       makes a file of N bytes
//	max NAME N        sets a limit
//	touch PATH        compares the result of Catalog.For for the path
//	text              compares the assembled instructions
//
// ACP_AGENT_UPDATE=1 rewrites the expected results.
//
// Clauses A25, D5.
func TestScan(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, file := range archives {
		t.Run("A25/"+strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			archive := txtar.Parse(text)
			got := found(t, archive)
			last := &archive.Files[len(archive.Files)-1]
			require.Equal(t, "want", last.Name,
				"the last file of the archive is the expected result")
			if os.Getenv("ACP_AGENT_UPDATE") != "" {
				last.Data = []byte(got)
				require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o644))
			}
			require.Equal(t, string(last.Data), got)
		})
	}
}

// found returns the result for an archive.
func found(t *testing.T, archive *txtar.Archive) string {
	top := tree(t, nil)
	for _, f := range archive.Files[:len(archive.Files)-1] {
		write(t, filepath.Join(top, filepath.FromSlash(f.Name)), string(f.Data))
	}
	o := discovery.Options{}
	var roots, touched []string
	text := false
	for line := range strings.SplitSeq(string(archive.Comment), "\n") {
		word := strings.Fields(line)
		if len(word) == 0 || word[0] == "#" {
			continue
		}
		path := ""
		if len(word) > 1 {
			path = filepath.Join(top, filepath.FromSlash(word[1]))
		}
		switch word[0] {
		case "roots":
			for _, root := range word[1:] {
				roots = append(roots, filepath.Join(top, root))
				require.NoError(t, os.MkdirAll(filepath.Join(top, root), 0o755))
			}
		case "link":
			link(t, strings.ReplaceAll(word[2], "TOP", top), path)
		case "hex":
			raw, err := hex.DecodeString(word[2])
			require.NoError(t, err)
			write(t, path, string(raw))
		case "size":
			write(t, path, strings.Repeat("x", number(t, word[2])))
		case "max":
			o[word[1]] = number(t, word[2])
		case "touch":
			touched = append(touched, path)
		case "text":
			text = true
		default:
			t.Fatalf("no such instruction: %s", line)
		}
	}
	c := scan(t, o, roots...)
	switch {
	case text:
		return strings.ReplaceAll(c.Instructions(nil).String(), top, "TOP")
	case len(touched) > 0:
		var b strings.Builder
		for _, path := range touched {
			list, err := c.For(t.Context(), path)
			require.NoError(t, err)
			b.WriteString("touch " + relative(path, top) + "\n")
			for _, a := range list {
				b.WriteString(line(a, top))
			}
		}
		return b.String()
	}
	return summary(c, top)
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// Clause A24.
func TestFilesDoNotAddRoots(t *testing.T) {
	top := tree(t, map[string]string{
		"a/AGENTS.md": "---\nadditionalDirectories: [../b]\n---\nWork in ../b too. @../b/AGENTS.md",
		"a/CLAUDE.md": "@../b/AGENTS.md",
		"a/.mcp.json": `{"mcpServers": {"x": {"command": "x", "cwd": "../b"}}, "roots": ["../b"]}`,
		"b/AGENTS.md": "Of b.",
	})
	ws := open(t, top+"/a")
	defer ws.Close()
	before := ws.Roots()
	c, err := discovery.Scan(t.Context(), ws)
	require.NoError(t, err)
	require.True(t, before.Equal(ws.Roots()))
	for _, a := range c.Artifacts() {
		require.Equal(t, 0, a.Root.Index)
	}
	require.NotContains(t, c.Instructions(nil).String(), "Of b.")
}

// Clause A25.
func TestLargeDirectory(t *testing.T) {
	files := make(map[string]string)
	for i := range 20 {
		files[fmt.Sprintf(".claude/commands/%d.md", i)] = "Do it."
	}
	top := tree(t, files)
	ws := roottest.OpenWith(t, workspace.Options{MaxEntries: 5}, top)
	c, err := discovery.Scan(t.Context(), ws)
	require.NoError(t, err)
	require.Len(t, c.Artifacts(), 5)
	require.Equal(t,
		top+" was not scanned completely: the limit of 5 directory entries was reached at "+filepath.Join(top, ".claude", "commands"), c.LimitsReached()[0].String())
}

// Clause A25.
func TestTimeout(t *testing.T) {
	top := tree(t, map[string]string{"a/AGENTS.md": "x", "b/AGENTS.md": "x"})
	c := scan(t, discovery.Options{"Timeout": 1}, top+"/a", top+"/b")
	require.Contains(t, c.LimitsReached()[0].String(), "the limit of 1ns was reached")
	require.Equal(t, 1, c.LimitsReached()[len(c.LimitsReached())-1].Root.Index)
	_, err := c.For(t.Context(), top+"/a/x")
	require.Error(t, err)
}

// Clause A25.
func TestScanErrors(t *testing.T) {
	top := tree(t, map[string]string{"AGENTS.md": "x"})
	ws := open(t, top)
	c, err := discovery.Scan(t.Context(), ws)
	require.NoError(t, err)
	why := errors.New("enough")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err = discovery.Scan(ended, ws)
	require.ErrorIs(t, err, why)
	require.NoError(t, ws.Close())
	_, err = discovery.Scan(t.Context(), ws)
	require.ErrorIs(t, err, workspace.ErrClosed)
	_, err = c.For(t.Context(), top+"/x")
	require.ErrorIs(t, err, workspace.ErrClosed)
}

// Small files can name each other often.
func TestRepeatedImportsAreNotFollowed(t *testing.T) {
	files := map[string]string{"CLAUDE.md": "@f0.md"}
	var all strings.Builder
	for i := range 20 {
		fmt.Fprintf(&all, "@f%d.md ", i)
	}
	for i := range 20 {
		files[fmt.Sprintf("f%d.md", i)] = strings.Repeat(all.String(), 100)
	}
	c := scan(t, discovery.Options{}, tree(t, files))
	list := c.Of(discovery.Instruction)
	require.Len(t, list, 1)
	require.NotEmpty(t, list[0].Imports)
	require.LessOrEqual(t, len(list[0].Diagnostics), 2000)
}

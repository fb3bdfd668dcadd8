package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/stretchr/testify/require"
)

var manualDir = flag.String("manual", "", "write the manual pages to `DIR`")

// Releases take the manual pages from this test, so that the program does not link what makes them.
func TestManual(t *testing.T) {
	dir := *manualDir
	if dir == "" {
		dir = t.TempDir()
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	root := newRoot(streams{})
	root.InitDefaultCompletionCmd("bash")
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: "acp-agent", Manual: "acp-agent"}
	require.NoError(t, doc.GenManTree(root, header, dir))
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		if !c.IsAvailableCommand() && c != root {
			return
		}
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, string(page), c.Short)
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(root)
}

package cli

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
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
	nameValues(root)
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
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if name, ok := f.Value.(namedValue); ok && !f.Hidden {
				require.Contains(t, string(page), "--"+f.Name+"\\fP="+string(name.name), f.Name)
			}
		})
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(root)
}

// namedValue is a flag whose manual shows the name of its value in place of the default.
type namedValue struct {
	pflag.Value
	name string
}

func (namedValue) Type() string { return "name" } // its default is not quoted

// nameValues makes the manual name the values of flags, as the help does, with its texts.
func nameValues(cmd *cobra.Command) {
	addHelp(cmd)
	name := func(f *pflag.Flag) {
		name, usage := pflag.UnquoteUsage(f)
		if _, done := f.Value.(namedValue); done || name == "" {
			return
		}
		if f.DefValue != "" && f.DefValue != "[]" {
			usage += " (default " + f.DefValue + ")"
		}
		f.Value, f.DefValue, f.Usage = namedValue{f.Value, name}, name, usage
	}
	cmd.Flags().VisitAll(name)
	cmd.PersistentFlags().VisitAll(name)
	for _, sub := range cmd.Commands() {
		nameValues(sub)
	}
}

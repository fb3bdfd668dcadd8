package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// Help texts fit a terminal of usual width, and flags name their values.
func TestHelpFits(t *testing.T) {
	root := newRoot(streams{})
	root.InitDefaultCompletionCmd("bash")
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		var out bytes.Buffer
		cmd.SetOut(&out)
		require.NoError(t, cmd.Help())
		for line := range strings.Lines(out.String()) {
			if cmd.Name() == "completion" || cmd.HasParent() && cmd.Parent().Name() == "completion" {
				break // cobra's texts
			}
			if utf8.RuneCountInString(line) > helpWidth+len("\n") {
				t.Errorf("%s: %s", cmd.CommandPath(), line)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); name != "" && name != strings.ToUpper(name) {
				t.Errorf("%s --%s: %s", cmd.CommandPath(), f.Name, name)
			}
		})
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(root)
}

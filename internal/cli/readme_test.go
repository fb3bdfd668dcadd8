package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/test/volume"
)

// console matches a console block of the README: a command and its output.
var console = regexp.MustCompile(
	"(?sm)^````console\n\\$ ([^\n]+)\n(.*?)^````$|^```console\n\\$ ([^\n]+)\n(.*?)^```$")

// TestReadme runs the commands in the README and compares their output.
func TestReadme(t *testing.T) {
	needs.Programs(t, "sh")
	top, err := filepath.Abs("../..")
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(top, "README.md"))
	require.NoError(t, err)
	binary := built(t)

	ran, tests := 0, false
	for _, block := range console.FindAllStringSubmatch(string(readme), -1) {
		command, shown := block[1]+block[3], block[2]+block[4]
		line, ours := strings.CutPrefix(command, "go run ./cmd/acp-agent ")
		if !ours {
			tests = tests || command == "go test ./..."
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), volume.Patience)
		defer cancel()
		run := exec.CommandContext(ctx, "sh", "-c", `"$0" `+line, binary)
		run.Dir = top
		run.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(),
			"XDG_CONFIG_HOME="+t.TempDir())
		printed, err := run.Output()
		require.NoError(t, err, command)
		require.Equal(t, shown, strings.ReplaceAll(string(printed), top, "/src/acp-agent"), command)
		ran++
	}
	require.Positive(t, ran, "the README has an example")
	require.True(t, tests, "the README explains how to run the tests")
}

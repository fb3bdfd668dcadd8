package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestDeploymentsUseFlagsOfServe checks the examples in docs/operating/deploy, which no test runs.
func TestDeploymentsUseFlagsOfServe(t *testing.T) {
	files, err := filepath.Glob("../../docs/operating/deploy/*")
	require.NoError(t, err)
	require.Len(t, files, 6)
	root := newCommands(streams{})
	serve, _, err := root.Find([]string{"serve"})
	require.NoError(t, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		if strings.HasSuffix(name, ".yaml") {
			decoder := yaml.NewDecoder(bytes.NewReader(text))
			for err = error(nil); err == nil; {
				var document map[string]any
				err = decoder.Decode(&document)
			}
			require.True(t, errors.Is(err, io.EOF), "%s: %v", name, err)
		}
		commands := regexp.MustCompile(`\[?"?serve"?[ ,].*--.*`).FindAllString(string(text), -1)
		require.True(t, len(commands) > 0 || strings.HasSuffix(name, ".sql"), name)
		for _, command := range commands {
			for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(command, -1) {
				require.NotNil(t, serve.Flags().Lookup(flag[2:]), "%s: %s", name, flag)
			}
		}
		for _, variable := range regexp.MustCompile(`ACP_AGENT_[A-Z_]+`).FindAllString(string(text), -1) {
			flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, "ACP_AGENT_"), "_", "-"))
			require.NotNil(t, serve.Flags().Lookup(flag), "%s: %s", name, variable)
		}
	}
}

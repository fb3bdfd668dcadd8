package cli

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/config"
)

const referencePage = "../../docs/reference.md"

// TestReference compares the tables of commands, flags and settings in docs/reference.md with the
// program. ACP_AGENT_UPDATE=1 rewrites them.
func TestReference(t *testing.T) {
	content, err := os.ReadFile(referencePage)
	require.NoError(t, err)
	page := string(content)
	tables := map[string]string{"commands": commandTable(), "settings": settingTable()}
	for name, want := range tables {
		_, rest, ok := strings.Cut(page, "<!-- The "+name+" are written by TestReference. -->\n")
		require.True(t, ok, name)
		has, _, ok := strings.Cut(rest, "\n\n")
		require.True(t, ok, name)
		if os.Getenv("ACP_AGENT_UPDATE") == "" {
			require.Equal(t, want, has, "ACP_AGENT_UPDATE=1 go test ./internal/cli -run Reference")
		}
		page = strings.Replace(page, has, want, 1)
	}
	if page != string(content) {
		require.NoError(t, os.WriteFile(referencePage, []byte(page), 0o644))
	}
}

// commandTable returns a table in Markdown of all commands with their own flags.
func commandTable() string {
	root := newCommands(streams{})
	var b strings.Builder
	b.WriteString("| command | purpose | further flags |\n|---|---|---|\n")
	var add func(*cobra.Command)
	add = func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" || c.HasParent() && c.Parent().Name() == "completion" {
			return
		}
		usage := strings.ReplaceAll(c.UseLine(), "[flags] ", "")
		usage = strings.TrimSuffix(usage, " [flags]")
		var flags []string
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			switch {
			case f.Hidden, isSameAs(root.Flags().Lookup(f.Name), f),
				strings.Contains(usage, "--"+f.Name):
			default:
				flags = append(flags, "`"+flagWithValue(f)+"`")
			}
		})
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.ReplaceAll(usage, "|", `\|`), c.Short,
			strings.Join(flags, ", "))
		for _, sub := range c.Commands() {
			add(sub)
		}
	}
	add(root)
	return strings.TrimSpace(b.String())
}

func isSameAs(setting, f *pflag.Flag) bool { return setting != nil && setting.Usage == f.Usage }

// settingTable returns a table in Markdown of the flags that are also settings.
func settingTable() string {
	root := newCommands(streams{})
	var b strings.Builder
	b.WriteString("| flag | environment | in the file | |\n|---|---|---|---|\n")
	row := func(f *pflag.Flag, variable, key string) {
		_, help := pflag.UnquoteUsage(f)
		help, _, _ = strings.Cut(help, " (default ") // it may depend on the system
		if value := f.DefValue; value != "" && value != "false" && value != "0" && value != "[]" {
			help += " (default " + value + ")"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", flagWithValue(f), inCodeIfAny(variable),
			inCodeIfAny(key), strings.NewReplacer("|", `\|`, "*", `\*`).Replace(help))
	}
	for _, s := range newSettings(streams{}).table() {
		row(root.Flags().Lookup(s.flag), s.variable, s.key)
	}
	row(root.PersistentFlags().Lookup("config"), "ACP_AGENT_CONFIG", "")
	return strings.TrimSpace(b.String())
}

func flagWithValue(f *pflag.Flag) string {
	value, _ := pflag.UnquoteUsage(f)
	return strings.TrimSpace("--" + f.Name + " " + value)
}

func inCodeIfAny(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// TestDocsHaveEveryKey checks that the documents name each key of the configuration file.
func TestDocsHaveEveryKey(t *testing.T) {
	all := pages(t)
	for page, part := range map[string]reflect.Type{
		"docs/reference.md": reflect.TypeFor[config.Config](),
		"docs/model.md":     reflect.TypeFor[config.Model](),
		"docs/mcp.md":       reflect.TypeFor[config.Server](),
	} {
		for _, key := range config.KeysOf(part) {
			require.Regexp(t, "[`\"]"+key+"[`\"]", all[page], page)
		}
	}
	agent, workspace := reflect.TypeFor[config.Agent](), reflect.TypeFor[config.Workspace]()
	for _, part := range []reflect.Type{agent, workspace} {
		for _, key := range config.KeysOf(part) {
			require.Regexp(t, "[`\"]"+key+"[`\"]", all["docs/reference.md"])
		}
	}
}

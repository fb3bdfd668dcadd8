package discovery_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
)

// Clause A25.
func TestServersDoNotShowSecrets(t *testing.T) {
	marker := filepath.Join(tree(t, nil), "started")
	quoted, err := json.Marshal(marker)
	require.NoError(t, err)
	top := tree(t, map[string]string{".mcp.json": `{"mcpServers": {
		"local": {"command": "touch", "args": [` + string(quoted) + `], "env": {"KEY": "s3cret", "B": "${HOME}"}},
		"web": {"url": "https://u:s3cret@h/p?token=s3cret", "headers": {"Authorization": "s3cret"}}}}`,
		".cursor/mcp.json": `{"mcpServers": {"x": {"command": "x", "env": {"KEY": s3cret}}}}`})
	c := scan(t, discovery.Options{}, top)
	local, web := c.Of(discovery.MCPServer)[0].Server, c.Of(discovery.MCPServer)[1].Server
	require.Equal(t, []string{"B", "KEY"}, local.Env.Names())
	require.Equal(t, map[string]string{"B": "${HOME}", "KEY": "s3cret"}, maps.Collect(local.Env.All()),
		"as written, to start the server")
	require.Equal(t, "https://u:s3cret@h/p?token=s3cret", string(web.URL))

	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("found", "local", local, "web", web, "env",
		local.Env, "url", web.URL)
	encoded, err := json.Marshal(c)
	require.NoError(t, err)
	for _, printed := range []string{
		log.String(), string(encoded), fmt.Sprintf("%v %+v %#v %s %q", c.Artifacts(), *local, *web,
			web.URL, local.Env),
	} {
		require.NotContains(t, printed, "s3cret")
	}
	require.Contains(t, string(encoded), `"env":["B","KEY"]`)
	require.NoFileExists(t, marker)
}

func TestServersTakeNumbersAsText(t *testing.T) {
	const values = `{"PORT": 8080, "RATE": 0.50, "BIG": 12345678901234567890, "DEBUG": true, "NONE": null, "A": "1"}`
	for file, content := range map[string]string{
		".mcp.json":     `{"mcpServers": {"x": {"command": "x", "env": ` + values + `}}}`,
		"opencode.json": `{"mcp": {"x": {"type": "local", "command": ["x"], "environment": ` + values + `}}}`,
	} {
		found := scan(t, discovery.Options{}, tree(t, map[string]string{file: content})).Of(discovery.MCPServer)
		require.Len(t, found, 1, file)
		require.NotNil(t, found[0].Server, "%s: %s", file, found[0].Reason)
		http := strings.NewReplacer(`"command": "x"`, `"type": "http", "url": "https://x"`, `"type": "local", "command": ["x"]`,
			`"type": "remote", "url": "https://x"`, `"environment"`, `"headers"`, `"env"`, `"headers"`).Replace(content)
		remote := scan(t, discovery.Options{}, tree(t, map[string]string{file: http})).Of(discovery.MCPServer)
		require.NotNil(t, remote[0].Server, "%s: %s", file, remote[0].Reason)
		for name, want := range map[string]string{
			"PORT": "8080", "RATE": "0.50", "BIG": "12345678901234567890", "DEBUG": "true", "NONE": "", "A": "1",
		} {
			value, ok := maps.Collect(found[0].Server.Env.All())[name]
			require.True(t, ok)
			require.Equal(t, want, value, "%s: %s", file, name)
			value, ok = maps.Collect(remote[0].Server.Headers.All())[name]
			require.True(t, ok)
			require.Equal(t, want, value, "%s: header %s", file, name)
		}
	}
}

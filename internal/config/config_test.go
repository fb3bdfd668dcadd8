package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestMCPPolicy(t *testing.T) {
	c, err := Parse("c.json",
		[]byte(`{"mcpServers": {"old": {"roots": "off"}, "*": {"onShrink": "notify"}}}`))
	require.NoError(t, err)
	require.Equal(t, mcp.Policy{Roots: new(false), ClientDocument: clientDocument}, c.MCPPolicy("old"))
	require.Equal(t, mcp.Policy{KeepOnShrink: true, ClientDocument: clientDocument}, c.MCPPolicy("another"))
	c, err = Parse("c.json", []byte(`{"mcpServers": {"slow": {"callTimeout": "2h"}}}`))
	require.NoError(t, err)
	require.Equal(t, 2*time.Hour, c.MCPPolicy("slow").CallTimeout)
	for setting, why := range map[string]string{
		`"onShrink": "perhaps"`: `"perhaps" must be one of: notify, restart`, `"callTimeout": "0s"`: "is not a time",
		`"callTimeout": "-1m"`: "is not a time", `"callTimeout": "never"`: "is not a time", `"callTimeout": 600`: "must be a string",
		`"callTimeout": ""`: "is not a time",
	} {
		_, err = Parse("c.json", []byte(`{"mcpServers": {"old": {`+setting+`}}}`))
		require.ErrorContains(t, err, why, setting)
	}
}

func TestRegisteredClient(t *testing.T) {
	t.Setenv("TEST_CLIENT_SECRET", "tangerine")
	c, err := Parse("c.json", []byte(
		`{"mcpServers": {"a": {"clientId": "id", "clientSecretEnv": "TEST_CLIENT_SECRET"}}}`))
	require.NoError(t, err)
	require.Equal(t, "id", c.MCPPolicy("a").ClientID)
	require.Equal(t, "tangerine", c.MCPPolicy("a").ClientSecret)
	require.Empty(t, c.MCPPolicy("b").ClientID)
	require.Equal(t, []string{"TEST_CLIENT_SECRET"}, c.KeyVariables(), "no server inherits it")
	for text, want := range map[string]string{
		`"*": {"clientId": "id"}`:                                "clientId is for one server",
		`"a": {"clientSecretEnv": "X"}`:                          "clientSecretEnv needs a clientId",
		`"a": {"clientId": "id", "clientSecretEnv": "tanger-1"}`: "not the secret itself",
	} {
		_, err := Parse("c.json", []byte(`{"mcpServers": {`+text+`}}`))
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "tanger-1")
	}
}

// The document that authorization servers read says what acp-agent sends.
func TestClientDocument(t *testing.T) {
	content, err := os.ReadFile("../../docs/mcp-client.json")
	require.NoError(t, err)
	var document map[string]any
	require.NoError(t, json.Unmarshal(content, &document))
	require.Equal(t, clientDocument, document["client_id"])
	require.Equal(t, "none", document["token_endpoint_auth_method"])
	require.Contains(t, document["redirect_uris"], "http://127.0.0.1/callback")
	require.Contains(t, document["grant_types"], "refresh_token")
}

// The parser would need all of the stack.
func TestConfigurationOfBrackets(t *testing.T) {
	_, err := Parse("c.json", []byte(strings.Repeat("[", 1<<20)))
	require.ErrorContains(t, err, "c.json: has more than 50000 brackets")
}

// An error says where to look, and what is allowed there.
func TestUTF16IsNamed(t *testing.T) {
	for _, content := range []string{"\xff\xfe{\x00}\x00", "\xfe\xff\x00{\x00}", "{\x00}\x00", "\x00{\x00}"} {
		_, err := Parse("c.json", []byte(content))
		require.EqualError(t, err, "c.json: the file is UTF-16 text: save it as UTF-8")
	}
}

func TestErrorsNameTheKeyOrTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"{\n\"agent\": }":                                  "c.json:2: not a JSON object",
		`{"agent": "x", "agent": "y"}`:                     "c.json: agent is given twice",
		`{"Path": "elsewhere/c.json"}`:                     "unknown key Path",
		`{"agents": {"x": {"cmd": "y"}}}`:                  "unknown key agents.x.cmd; known keys: command, args",
		`{"models": {"m": {"apiKey": "sk-secret"}}}`:       "the key itself does not belong in this file",
		`{"maxLine": "1"}`:                                 "c.json: maxLine: must be a whole number",
		`{"agents": {"x": {"sandboxPorts": ["http"]}}}`:    "sandboxPorts[0]: must be a TCP port",
		`{"agents": {"x": {"sandboxHosts": ["*"]}}}`:       "the labels before the first dot",
		`{"agents": {"x": {"sandboxHosts": "a.com"}}}`:     "sandboxHosts: must be a list of hosts",
		`{"mcpServers": {"x": {"sandboxHosts": [1]}}}`:     "sandboxHosts[0]: must be a string",
		`{"agent": "x", "model": "y"}`:                     "has both agent and model",
		`{"notify": []}`:                                   "notify needs a program and its arguments",
		`{"notify": "curl"}`:                               "notify: must be a list of strings",
		`{"workspaces": [{"cwd": ""}]}`:                    "workspaces[0]: cwd",
		`{"workspaces": [{"cwd": "/a", "budget": "5"}]}`:   `"5" is not a budget such as`,
		`{"agents": {"a b": {"command": "x"}}}`:            "agents.a b",
		`{"models": {"m": {"keyEnv": "sk-secret value"}}}`: "keyEnv must be the name of an environment variable",
		`{"workspaces": [{"cwd": "/a"}, {"cwd": "/a"}]}`:   "workspaces[0] has the same cwd",
		`{"models": {"m": {"api": "openai", "name": "x", ` +
			`"baseURL": "http://127.0.0.1:1", "fallback": "m"}}}`: `"m" is not another model of this file`,
	} {
		_, err := Parse("c.json", []byte(text))
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "secret", text)
	}
}

// A list that is empty allows nothing, and one that is missing allows everything.
//
// Clause X8.
func TestEmptyListsAreLists(t *testing.T) {
	for lists, limited := range map[string]bool{
		`"sandbox":"write"`: false, `"sandboxHosts":null,"sandboxPorts":null`: false,
		`"sandboxHosts":[],"sandboxPorts":[]`: true, `"sandboxHosts":["a.com"],"sandboxPorts":[1]`: true,
	} {
		c, err := Parse("c.json", []byte(`{"agents":{"gemini":{`+lists+`}},"mcpServers":{"x":{`+lists+`}}}`))
		require.NoError(t, err)
		for _, s := range []sandbox.Settings{c.Agents["gemini"].Settings(), c.MCPPolicy("x").Sandbox} {
			require.Equal(t, limited, s.Hosts.Limited, lists)
			require.Equal(t, limited, s.Ports.Limited, lists)
			require.Equal(t, strings.Contains(lists, "a.com"), len(s.Hosts.List) == 1, lists)
			require.Equal(t, strings.Contains(lists, "[1]") || !limited, s.Ports.Allow(1), lists)
		}
	}
}

// Editors start the program in any directory, so paths are relative to the file.
func TestPathsAreRelativeToTheFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(file, []byte(`{
		"stateDir": "state", // a comment
		"notify": ["./tell", "./me"],
		"workspaces": [{"cwd": "app", "directories": ["../shared"], "budget": "5 USD per day"}],
		"agents": {"mine": {"command": "./bin/agent", "state": ["own/", "$MINE/x"]}, "other": {"command": "agent"}},
	}`), 0o600))
	c, err := Read(file)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "state"), c.StateDir)
	require.Equal(t, []string{filepath.Join(dir, "tell"), "./me"}, c.Notify)
	require.Equal(t, dir, c.NotifyCommand(nil).Dir)
	require.Equal(t, filepath.Join(dir, "app"), c.Workspaces[0].Cwd)
	require.Equal(t, "5 USD per day", c.Workspaces[0].Budget.String())
	require.Equal(t, filepath.Join(dir, "bin", "agent"), c.Agents["mine"].Command)
	require.Equal(t, "agent", c.Agents["other"].Command)
	mine, ok := profiles.Find(c.Profiles(), "mine")
	require.True(t, ok)
	require.Equal(t, []string{filepath.Join(dir, "own"), "$MINE/x"}, mine.State.OwnDirs)
	require.Equal(t, []string{filepath.Join(dir, "own") + "/", "$MINE/x/"}, mine.Restriction().State)

	cwd, err := workspace.ParseDir(filepath.Join(dir, "app", "sub"))
	require.NoError(t, err)
	i, _ := c.WorkspaceOf(cwd)
	require.Equal(t, 0, i)
	elsewhere, err := workspace.ParseDir(filepath.Join(dir, "apple"))
	require.NoError(t, err)
	i, _ = c.WorkspaceOf(elsewhere)
	require.Equal(t, -1, i)

	_, err = Read(filepath.Join(dir, "none.json"))
	require.ErrorContains(t, err, "there is no file")
}

// The deny and ask rules of an entry hold in all folders below, also in those with an entry of
// their own. What it allows is for sessions that have no other.
//
// Clause R5.
func TestRulesOfNestedEntries(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"workspaces": [
		{"cwd": "src/shop", "permissions": {"allow": ["run make"], "deny": ["run rm"]}},
		{"cwd": "src", "permissions": {"allow": ["edit"], "deny": ["read **/.env", "read shop/sub/key"], "ask": ["run git push"]}},
		{"cwd": "src/plain"}, {"cwd": "other", "permissions": {"allow": ["read"]}}, {"cwd": "other/inner"}]}`), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "src", "shop"), 0o700))
	require.NoError(t, os.Symlink(filepath.Join(dir, "src", "shop"), filepath.Join(dir, "link")))
	c, err := Read(file)
	require.NoError(t, err)
	outer := &permission.Permissions{Ask: []string{"run git push"}, Deny: []string{"read **/.env", "read shop/sub/key"}}
	shop := func(key string) *permission.Permissions {
		return &permission.Permissions{Allow: []string{"run make"}, Ask: outer.Ask,
			Deny: append([]string{"run rm"}, append(outer.Deny, key)...)}
	}
	for name, want := range map[string]*permission.Permissions{
		"src": {Allow: []string{"edit"}, Ask: outer.Ask, Deny: outer.Deny}, "src/shop/sub": shop("read key"),
		"src/shop": shop("read sub/key"), "link": shop("read sub/key"),
		"src/plain": outer, "other/inner": nil, "elsewhere": nil,
	} {
		cwd, err := workspace.ParseDir(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, c.PermissionsFor(cwd), name)
	}
}

// A folder is its path, or an object that says that it may only be read.
//
// Clause A39.
func TestReadOnlyDirectories(t *testing.T) {
	c, err := Parse("c.json", []byte(`{"workspaces": [{"cwd": "/a", "directories": ["/b", {"path": "/c", "readOnly": true}, {"path": "/d"}]}]}`))
	require.NoError(t, err)
	require.Equal(t, []Directory{{Path: "/b"}, {Path: "/c", ReadOnly: true}, {Path: "/d"}},
		c.Workspaces[0].Directories)
	for _, invalid := range []string{`{"readOnly": true}`, `""`, `7`, `{"path": "/c", "readonly": true}`} {
		_, err := Parse("c.json", []byte(`{"workspaces": [{"cwd": "/a", "directories": [`+invalid+`]}]}`))
		require.Error(t, err, invalid)
	}
}

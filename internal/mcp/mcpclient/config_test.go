package mcpclient_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
)

// Clause W12.
func TestConfigPrintsNoSecrets(t *testing.T) {
	c := mcpclient.Config{
		Name: "s", Transport: acpmcp.HTTP, URL: "https://user:hunter2@example.com/?key=hunter2", Args: []string{"hunter2"},
		Env: []mcpclient.Pair{{Name: "A", Value: "hunter2"}}, Headers: []mcpclient.Pair{{Name: "B", Value: "hunter2"}},
	}
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("text", "config", c)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("json", "configs", []mcpclient.Config{c})
	encoded, err := json.Marshal(map[string]any{"all": []mcpclient.Config{c}, "pointer": &c})
	require.NoError(t, err)
	for _, printed := range []string{
		logged.String(), string(encoded), fmt.Sprint(c), fmt.Sprintf("%v %+v %#v %s %q", c, c, c, c, c), fmt.Sprintf("%+v %#v", []mcpclient.Config{c}, &c),
	} {
		require.NotContains(t, printed, "hunter2")
		require.Contains(t, printed, "s")
	}
}

// A server is kept only if its configuration is unchanged.
//
// Clause M15.
func TestChangedConfigReplacesServer(t *testing.T) {
	root := folder(t)
	w, other := roottest.Open(t, root), filepath.Join(root, "other")
	require.NoError(t, os.Mkdir(other, 0o700))
	stdio := func() mcpclient.Config {
		c := mcptest.Self("s", "sdk")
		c.Args = []string{"one", "two"}
		c.Env = append(c.Env, mcpclient.Pair{Name: "A", Value: "a"})
		return c
	}
	const unchanged = "nothing"
	for name, change := range map[string]func(*mcpclient.Config){
		unchanged:       func(c *mcpclient.Config) { c.Headers = []mcpclient.Pair{} },
		"name":          func(c *mcpclient.Config) { c.Name = "other" },
		"args":          func(c *mcpclient.Config) { c.Args = []string{"one", "three"} },
		"fewer args":    func(c *mcpclient.Config) { c.Args = nil },
		"order of args": func(c *mcpclient.Config) { c.Args = []string{"two", "one"} },
		"env":           func(c *mcpclient.Config) { c.Env[len(c.Env)-1].Value = "b" },
		"name in env":   func(c *mcpclient.Config) { c.Env[len(c.Env)-1].Name = "B" },
		"dir":           func(c *mcpclient.Config) { c.Dir = other },
		"policy":        func(c *mcpclient.Config) { c.Policy.KeepOnShrink = true },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, mcpclient.Options{})
			f.change(w, stdio())
			before := f.where("s").PID
			c := stdio()
			change(&c)
			f.change(w, c)
			after := f.where(f.Servers()[0].Prefix).PID
			require.Equal(t, name == unchanged, before == after)
		})
	}
}

// Clause M15.
func TestChangedHTTPConfigReplacesServer(t *testing.T) {
	w := roottest.Open(t, folder(t))
	one := func() mcpclient.Config { return remote("r", acpmcp.HTTP, "http://127.0.0.1:1/mcp") }
	for name, change := range map[string]func(*mcpclient.Config){
		"header":    func(c *mcpclient.Config) { c.Headers[0].Value = "Bearer another" },
		"url":       func(c *mcpclient.Config) { c.URL += "?x" },
		"transport": func(c *mcpclient.Config) { c.Transport = acpmcp.SSE },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, oneTry)
			f.change(w, one())
			f.failed()
			f.change(w, one())
			require.Equal(t, acpmcp.Failed, f.Servers()[0].State, "it was not replaced")
			c := one()
			change(&c)
			f.change(w, c)
			require.Equal(t, acpmcp.Idle, f.Servers()[0].State, "it was never started")
		})
	}
}

// Clause M2.
func TestRootsForHTTPServers(t *testing.T) {
	for address, byDefault := range map[string]bool{
		"http://127.0.0.1:80/x": true, "http://localhost/x": true, "http://[::1]:1/": true, "http://127.9.9.9/": true,
		"https://example.com/": false, "http://10.0.0.1/": false, "http://localhost.example.com/": false, "http://127.0.0.1.example.com/": false, "://": false,
	} {
		for policy, expected := range map[*bool]bool{nil: byDefault, new(true): true, new(false): false} {
			f := serving(t, mcpclient.Options{}, mcpclient.Config{Name: "s", Transport: acpmcp.HTTP, URL: address,
				Policy: acpmcp.Policy{Roots: policy}})
			require.Equal(t, expected, f.Servers()[0].RootsDeclared, "%s, expected %v", address, expected)
		}
	}
}

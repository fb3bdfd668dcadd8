package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/cli/registry"
)

const oneAgent = `{"agents": [{"id": "one", "name": "One", "version": "1.0.0",
	"distribution": {"npx": {"package": "one"}}}]}`

// Only what the user named is downloaded, once and over a connection that nobody can change.
func TestUpdateAgentsFromURL(t *testing.T) {
	mux := http.NewServeMux()
	serve := func(path, content string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(content))
		})
	}
	serve("/registry.json", oneAgent)
	serve("/page", "<!doctype html>")
	mux.Handle("/moved", http.RedirectHandler("/registry.json", http.StatusFound))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	mux.Handle("/away", http.RedirectHandler("http://agents.invalid/", http.StatusFound))
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		for range 1 + registry.MaxSize>>20 {
			_, _ = w.Write(bytes.Repeat([]byte(" "), 1<<20))
		}
	})
	mux.HandleFunc("/half", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"agents": [`))
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	encrypted := httptest.NewTLSServer(mux)
	defer encrypted.Close()

	for name, c := range map[string]struct{ url, says string }{
		"file":         {server.URL + "/registry.json?token=k3y", "stored 1 agent;"},
		"redirect":     {server.URL + "/moved", "stored 1 agent;"},
		"endless":      {server.URL + "/loop", "it redirects too many times"},
		"elsewhere":    {server.URL + "/away", "use https, or download it yourself"},
		"large":        {server.URL + "/large", "it has more than 16 MiB"},
		"half":         {server.URL + "/half", "unexpected EOF"},
		"page":         {server.URL + "/page", "it is not a registry.json"},
		"missing":      {server.URL + "/none", "the server answered 404 Not Found"},
		"unknown host": {encrypted.URL + "/registry.json", "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			said := update(t, dir, c.url)
			require.Contains(t, said, c.says)
			require.NotContains(t, said, "k3y")
			stored, err := os.ReadFile(filepath.Join(dir, "registry.json"))
			if !strings.HasPrefix(c.says, "stored") {
				require.ErrorIs(t, err, os.ErrNotExist)
				return
			}
			require.NoError(t, err)
			require.NotContains(t, string(stored), "k3y")
			r, leftOut, err := registry.Parse(stored)
			require.NoError(t, err)
			require.Empty(t, leftOut)
			require.Len(t, r.Agents, 1)
			require.Contains(t, r.CopiedFrom, server.URL)
		})
	}
}

// update runs agents update and returns what it prints.
func update(t *testing.T, dir, source string) string {
	t.Helper()
	for _, variable := range []string{"XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(variable, dir) // so that there is no configuration file
	}
	var said bytes.Buffer
	args := []string{"agents", "update", "--state-dir", dir, source}
	_ = run(t.Context(), args, streams{out: &said, err: &said})
	return said.String()
}

func TestUpdateAgentsToMany(t *testing.T) {
	const n = 2_000
	var entries []string
	for i := range n {
		entries = append(entries, fmt.Sprintf(`{"id": "a%d", "name": "A", "version": "1.0.0",
			"distribution": {"npx": {"package": "@scope/p%d"}}}`, i, i))
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "many.json")
	content := `{"agents": [` + strings.Join(entries, ",") + `]}`
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	require.Contains(t, update(t, dir, file), "stored 2000 agents;")

	set := newSettings(streams{})
	set.stateDir = dir
	command, profile, err := set.agentCommand("a1999", nil)
	require.NoError(t, err)
	require.Equal(t, "p1999", command.Path)
	require.Equal(t, "p1999", profile.Identity)
	_, _, err = set.agentCommand("nobody", nil)
	require.ErrorContains(t, err, `unknown agent "nobody"`)
	require.Less(t, len(err.Error()), 5000)
}

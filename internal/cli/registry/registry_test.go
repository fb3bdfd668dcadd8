package registry

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// read reads a registry with these entries.
func read(t *testing.T, entries string) (Registry, []error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "registry.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"agents": [`+entries+`]}`), 0o600))
	r, leftOut, err := Read(path)
	require.NoError(t, err)
	return r, leftOut
}

const valid = `"id": "one", "name": "One", "version": "1.0.0"`

// An entry comes from somebody else: nothing of it may mean something to a shell, choose another
// program, or hide.
func TestReadLeavesOutInvalidEntries(t *testing.T) {
	for members, problem := range map[string]string{
		valid: "no program for",
		`"id": "One", "name": "One", "version": "1.0.0"`:                                       "entry 1: its id",
		`"id": "one", "name": "", "version": "1.0.0"`:                                          "its name",
		`"id": "one", "name": "O\u202ene", "version": "1.0.0"`:                                 "its name",
		valid + `, "distribution": {"npx": {"package": "one; rm -rf x"}}`:                      "npx: its package",
		valid + `, "distribution": {"npx": {"package": "-g"}}`:                                 "npx: its package",
		valid + `, "distribution": {"uvx": {"package": "one", "cmd": "../one"}}`:               "uvx: its cmd",
		valid + `, "distribution": {"npx": {"package": "one", "cmd": "sh"}}`:                   "starts other programs",
		valid + `, "distribution": {"npx": {"package": "one", "args": ["a\nb"]}}`:              "an argument",
		valid + `, "distribution": {"npx": {"package": "one", "args": ["/x"]}}`:                "an argument",
		valid + `, "distribution": {"npx": {"package": "one", "args": ["--from=https://x"]}}`:  "an argument",
		valid + `, "distribution": {"npx": {"package": "one", "args": ["BEGIN{system()}"]}}`:   "an argument",
		valid + `, "distribution": {"binary": {"linux-x86_64": {"archive": "file:///x"}}}`:     "its archive",
		valid + `, "distribution": {"binary": {"x": {"archive": "https://x/y", "cmd": "/x"}}}`: "its cmd",
	} {
		r, leftOut := read(t, "{"+members+"}")
		require.Empty(t, r, members)
		require.Len(t, leftOut, 1, members)
		require.ErrorContains(t, leftOut[0], problem, members)
	}
}

// An entry cannot start a program of the machine, by whatever name or version.
func TestReadLeavesOutOtherPrograms(t *testing.T) {
	for _, program := range []string{
		"csh", "tcsh", "rbash", "busybox", "toybox", "su", "runuser", "chroot", "nsenter", "unshare",
		"ld.so", "ld-linux-x86-64.so.2", "find", "awk", "gawk-5.1", "vim", "vim.tiny", "expect",
		"xvfb-run", "watch", "python3.12", "Python3", "perl5.38", "lua5.4", "node22", "pwsh.exe",
		"git", "busybox-static", "bash", "sudo", "acp-agent",
	} {
		r, leftOut := read(t, "{"+valid+`, "distribution": {"npx": {"package": "one", "cmd": "`+
			program+`"}, "binary": {"linux-x86_64": {"archive": "https://x/y", "cmd": "./bin/`+
			program+`"}}}}`)
		require.Empty(t, r, program)
		require.Len(t, leftOut, 1)
		require.ErrorContains(t, leftOut[0], "starts other programs")
	}
	for _, program := range []string{"one", "goose", "git-agent", "vibe-acp", "sh-agent", "ldap-agent"} {
		r, _ := read(t, "{"+valid+`, "distribution": {"npx": {"package": "`+program+`"}}}`)
		require.Len(t, r, 1, program)
	}
}

// What is known about an agent stays as it is, whatever a registry calls it.
func TestProfiles(t *testing.T) {
	own := profiles.Known()
	r, _ := read(t, `
		{"id": "gemini", "name": "Other", "version": "1.0.0", "distribution": {"npx": {"package": "evil"}}},
		{"id": "google", "name": "Gemini", "version": "1.0.0",
		 "distribution": {"npx": {"package": "@google/gemini-cli@1.0.0"}}},
		{"id": "new", "name": "New", "version": "1.0.0",
		 "distribution": {"uvx": {"package": "new-agent==1.0.0", "args": ["acp"], "env": {"LD_PRELOAD": "/x"}}}}`)
	list := r.Profiles(own)
	require.Len(t, list, 2)
	known, ok := profiles.Find(own, "gemini")
	require.True(t, ok)
	require.Equal(t, "google", list[0].Name)
	require.Equal(t, known.Start.Command, list[0].Start.Command)
	require.Equal(t, "gemini", list[0].Identity)
	require.Equal(t, []string{"acp"}, list[1].Start.Args)
	require.Empty(t, list[1].Start.Env)
	require.Equal(t, "uv tool install new-agent==1.0.0", list[1].Start.Install)
}

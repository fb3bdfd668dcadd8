package mcpclient_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcpclient"
	"github.com/acp-agent/acp-agent/workspace"
)

func found(t testing.TB, change func(*mcpclient.Candidate)) mcpclient.Candidate {
	t.Helper()
	root, err := workspace.ParseDir(t.TempDir())
	require.NoError(t, err)
	x := mcpclient.Candidate{Root: root, File: filepath.Join(root.String(), ".mcp.json"), Config: mcpclient.Config{
		Name: "db", Transport: mcpclient.Stdio, Command: "sh", Args: []string{"-c", strings.Repeat("long ", 500) + "\u202egnp.exe\n; end"},
		Env: []mcpclient.Pair{{Name: "TOKEN", Value: "hunter2"}, {Name: "A", Value: "b"}},
	}}
	if change != nil {
		change(&x)
	}
	return x
}

func TestA25_AFoundServerIsAskedForWithItsWholeCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "mcp")
	consents := mcpclient.NewConsents(dir)
	x, h := found(t, nil), newHost()
	require.NoError(t, consents.Ask(t.Context(), h, x))
	require.Equal(t, 1, h.questions())
	shown := string(h.asked[0])
	require.Contains(t, shown, strings.Repeat("long ", 500))
	require.Contains(t, shown, `\\u202egnp.exe\\n; end`)
	require.Contains(t, shown, "TOKEN")
	require.NotContains(t, shown, "hunter2")
	_, err := os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist, "once is not remembered")

	h.answer = "reject-once"
	var denied *mcpclient.DeniedError
	require.ErrorAs(t, consents.Ask(t.Context(), h, x), &denied)
	h.answer = "allow-always"
	require.NoError(t, consents.Ask(t.Context(), h, x))
	h.answer = "reject-once"
	require.NoError(t, mcpclient.NewConsents(dir).Ask(t.Context(), h, x), "remembered")
	require.Equal(t, 3, h.questions())

	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	info, err := entries[0].Info()
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	content, err := os.ReadFile(filepath.Join(dir, entries[0].Name()))
	require.NoError(t, err)
	require.NotContains(t, string(content), "hunter2")

	require.NoError(t, consents.Forget(x.ID()))
	require.NoError(t, consents.Forget(x.ID()))
	require.ErrorAs(t, consents.Ask(t.Context(), h, x), &denied)
}

func TestA25_ConsentIsForTheCommandAsItWas(t *testing.T) {
	consents := mcpclient.NewConsents(t.TempDir())
	x := found(t, nil)
	require.NoError(t, consents.Allow(x))
	allowed, err := consents.Allowed(x)
	require.NoError(t, err)
	require.True(t, allowed)
	for what, change := range map[string]func(*mcpclient.Candidate){
		"root":      func(x *mcpclient.Candidate) { x.Root = found(t, nil).Root },
		"name":      func(x *mcpclient.Candidate) { x.Config.Name = "other" },
		"command":   func(x *mcpclient.Candidate) { x.Config.Command = "bash" },
		"arguments": func(x *mcpclient.Candidate) { x.Config.Args = []string{"-c"} },
		"split":     func(x *mcpclient.Candidate) { x.Config.Args = []string{"-c " + x.Config.Args[1]} },
		"env":       func(x *mcpclient.Candidate) { x.Config.Env = x.Config.Env[:1] },
		"value": func(x *mcpclient.Candidate) {
			x.Config.Env = []mcpclient.Pair{x.Config.Env[0], {Name: "TOKEN", Value: "new"}}
		},
		"folder":    func(x *mcpclient.Candidate) { x.Config.Dir = "/elsewhere" },
		"transport": func(x *mcpclient.Candidate) { x.Config.Transport = mcpclient.HTTP },
		"url":       func(x *mcpclient.Candidate) { x.Config.URL = "http://localhost" },
		"headers":   func(x *mcpclient.Candidate) { x.Config.Headers = []mcpclient.Pair{{Name: "A"}} },
	} {
		other := x
		change(&other)
		allowed, err := consents.Allowed(other)
		require.NoError(t, err)
		require.False(t, allowed, what)
	}
}

func TestA25_WhatCanRunOtherCodeIsShown(t *testing.T) {
	x := found(t, func(x *mcpclient.Candidate) {
		x.Config.Env = []mcpclient.Pair{{Name: "NODE_OPTIONS", Value: "--require /repo/evil.js"}, {Name: "NODE_AUTH_TOKEN", Value: "hunter2"}}
	})
	h := newHost()
	_ = mcpclient.NewConsents(t.TempDir()).Ask(t.Context(), h, x)
	require.Contains(t, string(h.asked[0]), "NODE_OPTIONS=--require /repo/evil.js")
	require.NotContains(t, string(h.asked[0]), "hunter2")
}

func TestA30_OnlyASelectedOptionAllows(t *testing.T) {
	h := newHost()
	h.answer = "unknown outcome"
	var denied *mcpclient.DeniedError
	require.ErrorAs(t, mcpclient.NewConsents(t.TempDir()).Ask(t.Context(), h, found(t, nil)), &denied)
}

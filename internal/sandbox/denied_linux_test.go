package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

func TestDenied(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) {
		return
	}
	in, home := dirtest.New(t), dirtest.New(t)
	t.Setenv("HOME", home)
	for _, dir := range []string{".cache", "tool", "a b"} {
		require.NoError(t, os.MkdirAll(filepath.Join(home, dir), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(home, "tool", "f"), nil, 0o600))
	p := sandbox.Policy{Mode: sandbox.Write, Write: []string{in}}
	for message, want := range map[string]string{
		// what shells, Go, Node.js and Python say
		"/bin/bash: line 1: HOME/tool/new: Permission denied":                                                     "HOME/tool",
		"sh: 1: cannot create HOME/tool/new: Permission denied":                                                   "HOME/tool",
		"ok\ntouch: cannot touch 'HOME/a b/new': Permission denied\n":                                             "HOME/a b",
		"open HOME/tool/f: permission denied":                                                                     "HOME/tool",
		"failed to initialize build cache at HOME/.cache/go-build: mkdir HOME/.cache/go-build: permission denied": "HOME/.cache/go-build",
		"cannot use the cache at HOME/.m2/repository/x: mkdir HOME/.m2: permission denied":                        "HOME/.m2/repository",
		"open HOME/.cache/go-build/00/x-d: permission denied":                                                     "HOME/.cache/go-build",
		"mkdir HOME/go/pkg/mod/cache: permission denied":                                                          "HOME/go/pkg",
		"npm error Error: EACCES: permission denied, mkdir 'HOME/.npm/_cacache'":                                  "HOME/.npm",
		"PermissionError: [Errno 13] Permission denied: 'HOME/other/x/y'":                                         "HOME/other",
		"HOME/file: Operation not permitted":                                                                      "HOME/file",
		"mkdir: cannot create directory ‘HOME/a b/new’: Permission denied":                                        "HOME/a b",
		"touch: cannot touch “HOME/tool/new”: Permission denied":                                                  "HOME/tool",
		// with the path in another line: npm and cargo
		"npm error code EACCES\nnpm error syscall mkdir\nnpm error path HOME/.npm/_cacache/tmp\n" +
			"npm error errno EACCES\nnpm error\nnpm error   sudo chown -R 0:0 \"HOME/.npm\"": "HOME/.npm",
		"{\n  errno: -13,\n  code: 'EACCES',\n  syscall: 'open',\n  path: 'HOME/tool/new'\n}": "HOME/tool",
		"error: failed to create directory `HOME/.cargo/registry/index/x`\n\nCaused by:\n" +
			"  Permission denied (os error 13)": "HOME/.cargo/registry",
		// nothing that the sandbox denies, or that we may do
		"IN/f: Permission denied":             "",
		"/dev/null: Permission denied":        "",
		"/etc/passwd: Permission denied":      "",
		"HOME/tool/new: No such file":         "",
		"Permission denied (publickey)":       "",
		"Permission denied\nHOME/tool/new ok": "",
	} {
		replace := strings.NewReplacer("HOME", home, "IN", in).Replace
		d, denied := p.Denied(replace(message))
		require.Equal(t, want != "", denied, message)
		require.Equal(t, replace(want), d.Grant, message)
		require.False(t, d.Reading)
		_, denied = sandbox.Policy{}.Denied(replace(message))
		require.False(t, denied)
	}
	p.Mode, p.Read = sandbox.Strict, []string{filepath.Join(home, "tool")}
	require.NoError(t, os.MkdirAll(filepath.Join(home, ".cache/x/y"), 0o700))
	d, _ := p.Denied("cat: Permission denied: '" + home + "/.cache/x/y'")
	require.Equal(t, sandbox.Denial{Path: home + "/.cache/x/y", Reading: true, Grant: home + "/.cache/x"}, d)
	d, _ = p.Denied("open " + home + "/tool/f: permission denied")
	require.Equal(t, sandbox.Denial{Path: home + "/tool/f", Grant: home + "/tool"}, d)

	// A change is not called reading, and what does not exist cannot be read.
	for message, reading := range map[string]bool{
		"mkdir: cannot create directory ‘HOME/.cache/x/y’: Permission denied":             false,
		"Error: EACCES: permission denied, unlink 'HOME/.cache/x/y'":                      false,
		"npm error code EACCES\nnpm error syscall rename\nnpm error path HOME/.cache/x/y": false,
		"open HOME/.cache/x/new: permission denied":                                       false,
		"open HOME/.cache/x/y: permission denied":                                         true,
		"ls: cannot open directory 'HOME/.cache/x/y': Permission denied":                  true,
	} {
		d, denied := p.Denied(strings.ReplaceAll(message, "HOME", home))
		require.True(t, denied, message)
		require.Equal(t, reading, d.Reading, message)
		require.Equal(t, home+"/.cache/x", d.Grant, message)
	}
}

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
		"/bin/bash: line 1: HOME/tool/new: Permission denied":                                                     "HOME/tool/new",
		"sh: 1: cannot create HOME/tool/new: Permission denied":                                                   "HOME/tool/new",
		"ok\ntouch: cannot touch 'HOME/a b/new': Permission denied\n":                                             "HOME/a b/new",
		"open HOME/tool/f: permission denied":                                                                     "HOME/tool/f",
		"failed to initialize build cache at HOME/.cache/go-build: mkdir HOME/.cache/go-build: permission denied": "HOME/.cache/go-build",
		"cannot use the cache at HOME/.m2/repository/x: mkdir HOME/.m2: permission denied":                        "HOME/.m2/repository/x",
		"npm error Error: EACCES: permission denied, mkdir 'HOME/.npm/_cacache'":                                  "HOME/.npm/_cacache",
		"PermissionError: [Errno 13] Permission denied: 'HOME/other/x/y'":                                         "HOME/other/x/y",
		"HOME/file: Operation not permitted":                                                                      "HOME/file",
		"mkdir: cannot create directory ‘HOME/a b/new’: Permission denied":                                        "HOME/a b/new",
		"touch: cannot touch “HOME/tool/new”: Permission denied":                                                  "HOME/tool/new",
		// with the path in another line: npm and cargo
		"npm error code EACCES\nnpm error syscall mkdir\nnpm error path HOME/.npm/_cacache/tmp\n" +
			"npm error errno EACCES\nnpm error\nnpm error   sudo chown -R 0:0 \"HOME/.npm\"": "HOME/.npm/_cacache/tmp",
		"{\n  errno: -13,\n  code: 'EACCES',\n  syscall: 'open',\n  path: 'HOME/tool/new'\n}": "HOME/tool/new",
		"error: failed to create directory `HOME/.cargo/registry/index/x`\n\nCaused by:\n" +
			"  Permission denied (os error 13)": "HOME/.cargo/registry/index/x",
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
		require.Equal(t, replace(want), d.Path, message)
		require.False(t, d.Reading)
		_, denied = sandbox.Policy{}.Denied(replace(message))
		require.False(t, denied)
	}
	p.Mode, p.Read = sandbox.Strict, []string{filepath.Join(home, "tool")}
	for path, reading := range map[string]bool{"/a b": true, "/tool/f": false, "/.cache/new": false} {
		d, denied := p.Denied("cat: Permission denied: '" + home + path + "'")
		require.True(t, denied)
		require.Equal(t, sandbox.Denial{Path: home + path, Reading: reading, Grant: d.Grant}, d)
	}
}

// No message makes acp-agent suggest a path that leads out of the sandbox.
//
// Clause X8.
func TestAdviceNeverWidens(t *testing.T) {
	if proctest.AsOrdinaryUser(t, t.Name()) {
		return
	}
	in, home := dirtest.New(t), dirtest.New(t, ".cache/cloned/.git/HEAD", "", ".cache/bare/HEAD", "",
		".cache/bare/refs/x", "", ".cache/bare/objects/x", "", ".cache/own/db", "", ".ssh/id", "",
		".cache/programs/x", "", ".npm/x", "", ".cargo/x", "", "tool/f", "")
	at := func(name string) string { return filepath.Join(home, name) }
	for link, target := range map[string]string{".cache/keys": "../.ssh", ".cache/all": "..", ".npm/up": "..",
		".cache/sibling": "../.npm", ".cache/linked": "../tool", "elsewhere": ".npm"} {
		require.NoError(t, os.Symlink(target, at(link)))
	}
	t.Setenv("HOME", home)
	t.Setenv("PATH", at(".cache/programs")+":/usr/bin")
	p := sandbox.Policy{Write: []string{in}, Own: []string{at(".cache/own")}}
	for path, want := range map[string]string{
		".cache/x/y": ".cache/x", ".npm/_cacache/x": ".npm", "go/pkg/mod/x": "go/pkg", ".cache/go-build": ".cache/go-build",
		".cargo/registry/x/y": ".cargo/registry", "Library/Caches/x/y": "Library/Caches/x", ".cache/sibling/x": ".cache/sibling",
		// what is not known to be a cache
		"": "", "..": "", "new": "", "tool/f": "", ".ssh/id": "", ".netrc": "", ".bashrc": "", ".config/x/y": "", ".cache": "",
		".cargo/new": "", ".cargo/credentials.toml": "", ".claude/x": "", ".local/bin/x": "", "go/bin/x": "", "elsewhere/x": "",
		".cache/huggingface/token": "", ".cache/pre-commit/x": "", "Library/LaunchAgents/x": "", "Library/Caches": "",
		// repositories, programs and our own files in one
		".cache/cloned/.git/hooks/x": "", ".cache/cloned/.GIT/x": "", ".cache/bare/packed-refs.lock": "", ".cache/bare/new/x": "",
		".cache/x/bin/y": "", ".cache/programs/new": "", ".cache/own/db": "", ".cache/own/new": "",
		// links
		".cache/keys/new": "", ".cache/keys": "", ".cache/all/.npm/x": "", ".npm/up/.ssh/id": "", ".cache/linked/f": "",
		"../../etc/passwd": "", "../../srv/x": "", "../../dev/vda": "",
	} {
		for _, p.Mode = range []sandbox.Mode{sandbox.Write, sandbox.Strict} {
			d, denied := p.Denied("open '" + home + "/" + path + "': Permission denied")
			require.True(t, denied || strings.HasPrefix(path, ".."), path)
			if want != "" {
				want = at(strings.TrimPrefix(want, home+"/"))
			}
			require.Equal(t, want, d.Grant, path)
		}
	}

	// The home directory may be a link.
	link := filepath.Join(in, "link")
	require.NoError(t, os.Symlink(home, link))
	t.Setenv("HOME", link)
	d, _ := p.Denied("open '" + link + "/.cache/x/y': Permission denied")
	require.Equal(t, link+"/.cache/x", d.Grant)
}

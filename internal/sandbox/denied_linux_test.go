package sandbox_test

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/tabletest"
)

// denied has messages of programs by the path that they are about.
//
//go:embed testdata/denied.txt
var denied string

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
	replace := strings.NewReplacer("HOME", home, "IN", in).Replace
	for want, messages := range tabletest.Parse(t, denied) {
		for _, message := range messages {
			d, is := p.Denied(replace(message))
			require.Equal(t, want != "nothing", is, message)
			require.False(t, d.Reading)
			if is {
				require.Equal(t, replace(want), d.Path, message)
			}
			_, is = sandbox.Policy{}.Denied(replace(message))
			require.False(t, is)
		}
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

package acp_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
)

// The files of a restricted backend are read and written as a client would, without asking one.
//
// Clauses X5, X8.
func TestFilesOfARestrictedBackend(t *testing.T) {
	var notify func(method, params string) error
	r := &scripted{restricted: true, opened: func(_ backend.Activation, h backend.Host) {
		notify = func(method, params string) error {
			return h.Notify(context.Background(), method, backend.Raw(params))
		}
	}}
	c := start(t, acp.Options{Backend: using(r)})
	root, out := folder(t), folder(t)
	in := func(name string) string { return filepath.Join(root, name) }
	id := c.open(root)
	writeFile(t, in("file"), "one\ntwo\nthree\n")
	writeFile(t, filepath.Join(out, "x"), "outside")
	writeFile(t, in("binary"), "\xff\x00")
	require.NoError(t, os.WriteFile(in("run"), []byte("old"), 0o750))
	require.NoError(t, os.Symlink("run", in("link")))
	require.NoError(t, os.Symlink(out, in("out")))
	c.permit("reject-once")

	type m map[string]any
	for _, one := range []struct {
		method string
		params m
		want   string
	}{
		{"read", m{"path": in("file")}, `{"content":"one\ntwo\nthree\n"}`},
		{"read", m{"path": in("file"), "line": 2, "limit": 1}, `{"content":"two\n"}`},
		{"read", m{"path": in("file"), "line": 3}, `{"content":"three\n"}`},
		{"read", m{"path": in("file"), "line": 9}, `{"content":""}`},
		{"read", m{"path": in("file"), "limit": 0}, `{"content":""}`},
		{"read", m{"path": in("file"), "line": "x"}, "want a whole number"},
		{"read", m{"path": in("missing")}, "(-32002)"},
		{"read", m{"path": in("no/missing")}, "(-32002)"},
		{"read", m{"path": in("binary")}, "is a binary file"},
		{"read", m{"path": root}, "is a directory"},
		{"read", m{"path": "file"}, "is not absolute"},
		{"read", m{"path": in("out/x")}, "did not allow"},
		{"write", m{"path": in("new"), "content": "n"}, "{} <nil>"},
		{"write", m{"path": in("link"), "content": "changed"}, "{} <nil>"},
		{"write", m{"path": in("no/new"), "content": "n"}, "no such file"},
		{"write", m{"path": in("out/x"), "content": "n"}, "acp-agent refused this"},
		{"write", m{"path": in("out/new"), "content": "n"}, "acp-agent refused this"},
		{"write", m{"path": in("file")}, "content is missing"},
		{"write", m{"path": in("file"), "content": nil}, "content"},
	} {
		got := c.texts(id, "call fs/"+one.method+"_text_file "+encode(one.params))[0]
		require.Contains(t, got, one.want, "%s %v", one.method, one.params)
	}
	got := c.texts(id, "call fs/list "+encode(m{"path": in("file")}))[0]
	require.Contains(t, got, "is not offered")
	for _, method := range []string{"fs/write_text_file", "fs/list"} {
		err := notify(method, encode(m{"path": in("file"), "content": "notified"}))
		require.ErrorContains(t, err, "is not offered")
	}

	for name, want := range map[string]string{"new": "n", "run": "changed",
		"file": "one\ntwo\nthree\n", "out/x": "outside"} {
		text, err := os.ReadFile(in(name))
		require.NoError(t, err)
		require.Equal(t, want, string(text), name)
	}
	info, err := os.Lstat(in("run"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o750), info.Mode())
	require.NoFileExists(t, in("out/new"))
	for _, m := range c.messages() {
		require.NotContains(t, m.Method, "fs/")
	}
}

// A restricted subagent gets only files of its own folders.
//
// Clause X8.
func TestFilesOfARestrictedSubagent(t *testing.T) {
	r := &family{scripted: scripted{restricted: true}}
	c := connect(t, acp.Options{Backend: using(r)})
	c.declaring(`{"subagents":{},"fs":{"readTextFile":true}}`)
	root := folder(t)
	own := filepath.Join(root, "own")
	require.NoError(t, os.Mkdir(own, 0o700))
	for file, want := range map[string]string{
		writeFile(t, filepath.Join(root, "x"), "x"): "acp-agent refused this",
		writeFile(t, filepath.Join(own, "y"), "y"):  `{"content":"y"}`,
	} {
		got := c.texts(c.open(root), "ask "+own+" fs/read_text_file "+
			encode(map[string]string{"path": file}))
		require.Contains(t, got[0], want)
	}
	for _, m := range c.messages() {
		require.NotContains(t, m.Method, "fs/")
	}
}

// A client that does not offer files hides them from a restricted backend too.
func TestRestrictedBackendsNeedTheCapability(t *testing.T) {
	c := connect(t, acp.Options{Backend: using(&scripted{restricted: true})})
	c.declaring(`{"fs":{"readTextFile":true}}`)
	root := folder(t)
	id := c.open(root)
	file := writeFile(t, filepath.Join(root, "x"), "x")
	require.Contains(t, c.readFile(id, file), `{"content":"x"}`)
	got := c.texts(id, "call fs/write_text_file "+
		encode(map[string]string{"path": file, "content": "n"}))
	require.Contains(t, got[0], "the client does not offer fs/write_text_file")
}

// The rules hold for the file that is opened, whatever the path led to when they were compared.
func TestRulesForFilesThatARestrictedBackendExchanges(t *testing.T) {
	var host backend.Host
	r := &scripted{restricted: true, opened: func(_ backend.Activation, h backend.Host) { host = h }}
	c := start(t, acp.Options{Backend: using(r),
		Permissions: ruling(acp.Permissions{Ask: []string{"read asked*"}, Deny: []string{"read denied"}})})
	root := folder(t)
	in := func(name string) string { return filepath.Join(root, name) }
	for _, name := range []string{"free", "asked", "asked2", "denied"} {
		writeFile(t, in(name), name)
	}
	c.texts(c.open(root), "say here") // from then on the user can be asked
	c.permit("allow-once")
	for _, one := range []struct{ before, after, want string }{
		{"free", "free", `{"content":"free"}`},
		{"asked", "asked", `{"content":"asked"}`},
		{"free", "asked", "cannot ask the user here"},
		{"free", "denied", "denies it"},
		{"asked", "denied", "replaced"},
		{"asked", "asked2", "replaced"},
	} {
		_ = os.Remove(in("link"))
		require.NoError(t, os.Symlink(one.before, in("link")))
		params := encode(map[string]any{"path": in("link")})
		work := host.Call(t.Context(), "fs/read_text_file", backend.Raw(params))
		require.NoError(t, os.Remove(in("link")))
		require.NoError(t, os.Symlink(one.after, in("link")))
		result, err := work()
		got := fmt.Sprint(string(result), err)
		require.Contains(t, got, one.want, "%s, then %s", one.before, one.after)
	}
}

package tools

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/workspace"
)

// pathCalls has a call of each tool with a path, after the name of the tool.
var pathCalls = map[string]args{
	"list_directory":    {"path": "PATH"},
	"file_info":         {"path": "PATH"},
	"read_file":         {"path": "PATH"},
	"directory_tree":    {"path": "PATH", "ignored": "include"},
	"read_file tail":    {"path": "PATH", "tail": 5},
	"read_files":        {"paths": "PATH"},
	"read_media":        {"path": "PATH"},
	"find_files":        {"path": "PATH", "ignored": "include"},
	"search":            {"path": "PATH", "pattern": "."},
	"write_file":        {"path": "PATH", "content": "intruder\n"},
	"edit_file":         {"path": "PATH", "old_text": "secret", "new_text": "intruder"},
	"edit_file dry run": {"path": "PATH", "old_text": "secret", "new_text": "", "dry_run": true},
	// These act on a name itself, so they are given one below the path.
	"create_directory": {"path": "PATH/new"},
	"delete_file":      {"path": "PATH/secret"},
	"move_file":        {"path": "PATH/secret", "to": "moved"},
	"move_file to":     {"path": "in", "to": "PATH/new"},
}

// callAt returns one of the pathCalls with a path.
func callAt(label, path string) (tool string, a args) {
	a = args{}
	for name, value := range pathCalls[label] {
		if s, ok := value.(string); ok {
			value = strings.Replace(s, "PATH", path, 1)
		}
		if a[name] = value; name == "paths" {
			a[name] = []any{value}
		}
	}
	tool, _, _ = strings.Cut(label, " ")
	return tool, a
}

// twoRoots serves the roots top/app and top/lib. Outside are top/out and siblings whose names begin
// with "app".
func twoRoots(t *testing.T) (top string, h *host) {
	t.Helper()
	top = plant(t, fileTree{
		"app/in": "fine\n", "app/sub/in": "fine\n", "lib/in": "fine\n", "out/secret": "secret\n", "out/sub/secret": "secret\n",
		"app-evil/secret": "secret\n", "app.bak/secret": "secret\n", "appx/secret": "secret\n",
	})
	return top, serve(t, openRoots(t, filepath.Join(top, "app"), filepath.Join(top, "lib")),
		Options{})
}

// requireRefused requires that every tool rejects the paths without asking for permission or
// changing anything.
func requireRefused(t *testing.T, h *host, top string, paths ...string) {
	t.Helper()
	before := planted(t, top)
	for _, path := range paths {
		for label := range pathCalls {
			result, err := h.try(callAt(label, path))
			require.Error(t, err, "%s %q gives %s", label, path, result.Text)
			require.NotContains(t, err.Error(), "secret\n")
		}
	}
	require.Empty(t, h.asked)
	require.Equal(t, before, planted(t, top))
}

func requireOutside(t *testing.T, h *host, top string, paths ...string) {
	t.Helper()
	requireRefused(t, h, top, paths...)
	for _, path := range paths {
		for label := range pathCalls {
			_, err := h.try(callAt(label, path))
			var outside *workspace.OutsideError
			require.ErrorAs(t, err, &outside, "%s %q", label, path)
			require.ErrorContains(t, err, ". list_roots shows all folders")
		}
	}
}

// Clause C9.
func TestUnusualNames(t *testing.T) {
	top, h := twoRoots(t)
	requireRefused(t, h, top, "a\x00b", "\x00", strings.Repeat("n", 256),
		strings.Repeat("d/", 3000)+"f", strings.Repeat("x", 40_000))
	for _, name := range []string{"-rf", " ", "a\nb", "é", "é", "A", "a", "…", `quote"d`,
		strings.Repeat("n", 255), "%2e%2e", "~", "$HOME", "*", "[a]"} {
		if err := os.WriteFile(filepath.Join(top, "app", name), []byte("here "+name+"\n"),
			0o600); err != nil {
			continue // this file system does not have it
		}
		require.Equal(t, "here "+name+"\n", h.read(args{"path": name}).Content)
		h.said("edit_file", args{"path": name, "old_text": "here", "new_text": "there"})
		path := filepath.Join(top, "app", name)
		require.Equal(t, path, h.found("search", args{"path": name, "pattern": "^there"})[0].Path)
		require.Equal(t, []FoundAt{{Path: path}}, h.found("find_files", args{"path": name}))
		require.NoError(t, os.Remove(filepath.Join(top, "app", name)))
	}
	_, err := h.set.Call(t.Context(), "read_file", []byte("{\"path\":\"\xff\"}"))
	require.ErrorContains(t, err, "not valid UTF-8")
	_, err = h.set.Call(t.Context(), "read_file", []byte(`{"path":""}`))
	require.ErrorContains(t, err, "path must be a string that is not empty")
}

// Clause C9.
func TestMisleadingNamesAreQuoted(t *testing.T) {
	top, h := twoRoots(t)
	for _, name := range []string{"a\nroot /:", "a\r", "a\x1b[2K", "a\u2028b", "a\u2029b",
		"a\u202etxt.exe", "a\u2066b", "a\u200fb", "a\u0085b"} {
		if err := os.WriteFile(filepath.Join(top, "app", name), []byte("here\n"),
			0o600); err != nil {
			continue // this file system does not have it
		}
		for _, call := range []struct {
			tool string
			args args
		}{
			{"list_directory", args{}}, {"find_files", args{"glob": "a*"}}, {"search",
				args{"pattern": "here"}}, {"read_file", args{"path": name}},
			{"file_info", args{"path": name}}, {"edit_file",
				args{"path": name, "old_text": "here", "new_text": "there"}},
			{"write_file", args{"path": name, "content": "all\n"}},
		} {
			said := h.said(call.tool, call.args)
			require.NotContains(t, said, name, call.tool)
		}
		require.NoError(t, os.Remove(filepath.Join(top, "app", name)))
	}
}

// Clause C10.
func TestLinksBetweenRoots(t *testing.T) {
	top, h := twoRoots(t)
	symlink(t, filepath.Join(top, "app/sub"), filepath.Join(top, "app/absolute"))
	symlink(t, filepath.Join(top, "lib"), filepath.Join(top, "app/tolib"))
	symlink(t, "../app/sub", filepath.Join(top, "lib/back"))
	for i := range 30 {
		symlink(t, fmt.Sprintf("chain%d", i+1), filepath.Join(top, fmt.Sprintf("app/chain%d", i)))
	}
	symlink(t, "in", filepath.Join(top, "app/chain30"))
	app, lib := filepath.Join(top, "app"), filepath.Join(top, "lib")
	for path, want := range map[string]location{
		"absolute/in":   {filepath.Join(app, "sub/in"), app},
		"tolib/in":      {filepath.Join(lib, "in"), lib},
		"tolib/back/in": {filepath.Join(app, "sub/in"), app},
		"../lib/in":     {filepath.Join(lib, "in"), lib},
		"chain0":        {filepath.Join(app, "in"), app},
	} {
		require.Equal(t, want, locate(h.read(args{"path": path}).Ref), path)
		require.Contains(t, h.said("file_info", args{"path": path}), want.String(), path)
		require.Equal(t, []FoundAt{{Path: want.Path}}, h.found("find_files", args{"path": path}))
		for name, a := range map[string]args{
			"search":     {"pattern": "fine"},
			"edit_file":  {"old_text": "fine", "new_text": "fine"},
			"write_file": {"content": "fine\n"},
		} {
			a["path"] = path
			require.True(t, strings.HasPrefix(h.said(name, a), want.String()), "%s %s", name, path)
		}
	}
	require.Contains(t, h.said("list_directory", args{"path": "tolib"}), location{lib, lib}.String())
}

// Clause A24.
func TestNoArgumentWidensTheScope(t *testing.T) {
	top, h := twoRoots(t)
	before := h.set.ws.Roots()
	for _, name := range []string{"roots", "root", "cwd", "additionalDirectories", "_meta"} {
		for label := range pathCalls {
			tool, a := callAt(label, filepath.Join(top, "out"))
			a[name] = top
			_, err := h.set.Call(t.Context(), tool, encode(a))
			var outside *workspace.OutsideError
			require.ErrorAs(t, err, &outside, "%s %s", label, name)
			require.ErrorContains(t, err, fmt.Sprintf("there is no argument %q", name))
			_, err = h.set.Call(t.Context(), tool, encode(args{name: top, "Path": "in"}))
			var wrong *argumentError
			require.ErrorAs(t, err, &wrong, "%s %s", label, name)
		}
		result, err := h.set.Call(t.Context(), "find_files", encode(args{name: top}))
		require.NoError(t, err)
		require.NotContains(t, result.Text, filepath.Join(top, "out"))
	}
	require.Equal(t, before, h.set.ws.Roots())
	require.Empty(t, h.asked)
	requireOutside(t, h, top, filepath.Join(top, "out/secret"))
}

// Clause A6.
func TestDeniedDirectories(t *testing.T) {
	top := plant(t, fileTree{"app/in": "fine\n", "app/private/secret": "secret\n"})
	deny, err := workspace.ParseDir(filepath.Join(top, "app/private"))
	require.NoError(t, err)
	o := workspace.Options{Policy: workspace.Policy{Deny: []workspace.Dir{deny}}}
	h := serve(t, roottest.OpenWith(t, o, filepath.Join(top, "app")), Options{})
	requireRefused(t, h, top, "private", "private/secret")
	for label := range pathCalls {
		_, err := h.try(callAt(label, "private/secret"))
		var denied *workspace.DeniedError
		require.True(t, errors.As(err, &denied), "%s %v", label, err)
	}
	require.Empty(t, h.found("search", args{"pattern": "secret", "ignored": "include"}))
	require.Len(t, h.found("find_files", args{"ignored": "include"}), 1)
}

// Clause C8.
func TestReplacedRoot(t *testing.T) {
	top, h := twoRoots(t)
	app, away := filepath.Join(top, "app"), filepath.Join(top, "away")
	require.NoError(t, os.Rename(app, away))
	symlink(t, filepath.Join(top, "out"), app)
	require.NoError(t, os.WriteFile(filepath.Join(top, "out/in"), []byte("secret\n"), 0o600))
	before := planted(t, filepath.Join(top, "out"))
	for _, path := range []string{"in", filepath.Join(app, "in")} {
		require.Equal(t, "fine\n", h.read(args{"path": path}).Content)
		require.Len(t, h.found("search", args{"path": path, "pattern": "fine"}), 1)
	}
	require.Contains(t, h.said("list_directory", args{}), "2 entries")
	require.Empty(t, h.found("search", args{"pattern": "secret"}))
	h.said("write_file", args{"path": "new", "content": "x\n"})
	require.Equal(t, before, planted(t, filepath.Join(top, "out")))
	require.FileExists(t, filepath.Join(away, "new"))
	require.Contains(t, h.said("list_roots", args{}), "[replaced]")
	err := h.refused("edit_file", args{"path": "only outside", "old_text": "a", "new_text": "b"})
	require.ErrorContains(t, err, "was replaced after the session started: load the session again")
}

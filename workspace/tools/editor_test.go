package tools

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// zed is an editor as Zed is: it opens every file that it is asked for, has "\n" in place of "\r\n"
// in its buffers, and saves what it is given.
type zed struct {
	unsaved map[string]string // by path
	read    []string          // paths
	refuse  error
	format  func(string) string
}

func (z *zed) ReadTextFile(_ context.Context, at workspace.Ref) (string, error) {
	z.read = append(z.read, at.Path())
	if text, ok := z.unsaved[at.Path()]; ok {
		return text, nil
	}
	text, err := os.ReadFile(at.Path())
	return strings.ReplaceAll(string(text), "\r\n", "\n"), err
}

func (z *zed) WriteTextFile(_ context.Context, at workspace.Ref, text string) error {
	if z.refuse != nil {
		return z.refuse
	}
	old, err := os.ReadFile(at.Path())
	if err != nil {
		return err
	}
	if z.format != nil {
		text = z.format(text)
	}
	if strings.Contains(text, "\r") {
		return errors.New("the buffer has other line ends")
	}
	if onlyCRLF(string(old)) {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	delete(z.unsaved, at.Path())
	return os.WriteFile(at.Path(), []byte(text), 0o600)
}

// inZed serves files that are open in an editor.
func inZed(t *testing.T, files fileTree) (dir string, z *zed, h *host) {
	t.Helper()
	dir = plant(t, files)
	z = &zed{unsaved: map[string]string{}}
	return dir, z, serve(t, openRoots(t, dir), Options{Editor: z})
}

func TestUnsavedText(t *testing.T) {
	dir, z, h := inZed(t, fileTree{"a": "one\ntwo\n", "crlf": "one\r\ntwo\r\n", "sub/b": "b\n"})
	path := filepath.Join(dir, "a")
	require.NotContains(t, h.said("read_file", args{"path": "a"}), "not saved")
	require.Contains(t, h.said("read_file", args{"path": "crlf"}), "one\r\n", "as on the disk")

	z.unsaved[path] = "one\ntyped\nthree\n"
	result := h.said("read_file", args{"path": "a"})
	require.Contains(t, result, "lines 1 to 3 of 3, version "+versionOf(z.unsaved[path])+
		", as it is in the user's editor, where changes are not saved\none\ntyped\nthree\n")
	require.Contains(t, h.said("read_file", args{"path": "a", "offset": 2, "limit": 1}), "\ntyped\n")
	require.Contains(t, h.said("read_file", args{"path": "a", "tail": 1}), "\nthree\n")
	require.Contains(t, h.said("read_files", args{"paths": []string{"sub/b", "a"}}), "typed")

	result = h.said("edit_file", args{"path": "a", "old_text": "typed", "new_text": "changed",
		"if_version": versionOf("one\ntyped\nthree\n")})
	require.Contains(t, result, "was changed, 3 lines, version "+versionOf("one\nchanged\nthree\n"))
	require.NotContains(t, result, "editor")
	require.Equal(t, "one\ntyped\nthree\n", *h.asked[0].Old)
	require.Equal(t, "one\nchanged\nthree\n", planted(t, dir)["a"])

	h.said("edit_file", args{"path": "crlf", "old_text": "two", "new_text": "2"})
	require.Equal(t, "one\r\n2\r\n", planted(t, dir)["crlf"])
	h.said("write_file", args{"path": "new", "content": "new\n"})
	require.Equal(t, "new\n", planted(t, dir)["new"])
}

// An editor that does not answer, or with what cannot be the text, does not count.
func TestEditorThatRefuses(t *testing.T) {
	dir, z, h := inZed(t, fileTree{"a": "one\n", "large": strings.Repeat("x\n", maxOpen), "nul": "\x00"})
	z.refuse = errors.New("no such buffer")
	h.said("edit_file", args{"path": "a", "old_text": "one", "new_text": "two"})
	require.Equal(t, "two\n", planted(t, dir)["a"], "it is saved, so the disk can be written")

	path := filepath.Join(dir, "a")
	z.unsaved[path] = "typed\n"
	require.ErrorContains(t, h.refused("edit_file", args{"path": "a", "old_text": "typed", "new_text": "x"}),
		"no such buffer")
	require.Equal(t, "two\n", planted(t, dir)["a"])
	require.Equal(t, "typed\n", z.unsaved[path])

	for _, broken := range []string{"\x00", "\xff", strings.Repeat("x", defaultMaxFileSize+1)} {
		z.unsaved[path] = broken
		require.Contains(t, h.said("read_file", args{"path": "a"}), "\ntwo\n")
	}
	z.read = nil
	require.Contains(t, h.said("read_file", args{"path": "large", "limit": 1}), "\nx\n")
	h.refused("read_file", args{"path": "nul"})
	require.Empty(t, z.read, "the editor is not asked for these")
}

// Exactly what the user was shown is changed, in the file that was judged.
func TestEditorChangesWhileTheUserIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(dir string, z *zed)
		want      any
	}{
		"typing": {func(dir string, z *zed) { z.unsaved[filepath.Join(dir, "sub/a")] = "typed\n" },
			new(*workspace.ChangedError)},
		"saving": {func(dir string, _ *zed) {
			_ = os.WriteFile(filepath.Join(dir, "sub/a"), []byte("saved\n"), 0o600)
		}, new(*workspace.ChangedError)},
		"a link outside": {func(dir string, _ *zed) {
			_ = os.RemoveAll(filepath.Join(dir, "sub"))
			_ = os.Symlink(filepath.Join(dir, "../outside"), filepath.Join(dir, "sub"))
		}, new(*workspace.OutsideError)},
		"a link inside": {func(dir string, _ *zed) {
			_ = os.RemoveAll(filepath.Join(dir, "sub"))
			_ = os.Symlink("other", filepath.Join(dir, "sub"))
		}, new(*workspace.MovedError)},
	} {
		t.Run(name, func(t *testing.T) {
			top := plant(t, fileTree{"root/sub/a": "one\n", "root/other/a": "one\n", "outside/a": "one\n"})
			dir := filepath.Join(top, "root")
			z := &zed{unsaved: map[string]string{}}
			h := serve(t, openRoots(t, dir), Options{Editor: z})
			h.decide = func(Change) error {
				c.meanwhile(dir, z)
				return nil
			}
			require.ErrorAs(t, h.refused("edit_file",
				args{"path": "sub/a", "old_text": "one", "new_text": "two"}), c.want)
			for path, text := range planted(t, top) {
				require.NotContains(t, text, "two", path)
			}
		})
	}
}

// A file that is marked read-only, and what the editor makes of a text.
func TestEditorThatFormats(t *testing.T) {
	dir, z, h := inZed(t, fileTree{"a": "one\n", "fixed": "one\n"})
	z.format = strings.ToUpper
	result := h.said("edit_file", args{"path": "a", "old_text": "one", "new_text": "two"})
	require.Contains(t, result, "version "+versionOf("TWO\n")+"\n")
	require.Contains(t, result, "the user's editor has changed the text further")
	require.NoError(t, os.Chmod(filepath.Join(dir, "fixed"), 0o400))
	require.ErrorIs(t, h.refused("write_file", args{"path": "fixed", "content": "x\n"}), os.ErrPermission)
	require.Equal(t, "one\n", planted(t, dir)["fixed"])
}

package tools

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

func TestReadFile(t *testing.T) {
	app := plant(t, fileTree{
		"a.txt": "one\ntwo\nthree\nfour\n", "no end": "one\ntwo", "empty": "", "crlf": "a\r\nb\r\n", "bom": "\ufeffx\n", "nul": "a\nb\x00", "latin": "\xe9",
	})
	h := serve(t, openRoots(t, app), Options{})
	for _, c := range []struct {
		args                args
		content             string
		first, lines, total int
	}{
		{args{"path": "a.txt"}, "one\ntwo\nthree\nfour\n", 1, 4, 4},
		{args{"path": filepath.Join(app, "a.txt"), "offset": 2, "limit": 2}, "two\nthree\n", 2, 2,
			4},
		{args{"path": "a.txt", "offset": 4, "limit": 9}, "four\n", 4, 1, 4},
		{args{"path": "a.txt", "offset": 9}, "", 9, 0, 4},
		{args{"path": "no end", "offset": 2.0}, "two", 2, 1, 2},
		{args{"path": "empty"}, "", 1, 0, 0},
		{args{"path": "crlf"}, "a\r\nb\r\n", 1, 2, 2},
		{args{"path": "bom"}, "x\n", 1, 1, 1},
		{args{"path": "a.txt", "tail": 2}, "three\nfour\n", 3, 2, 4},
		{args{"path": "a.txt", "tail": 9}, "one\ntwo\nthree\nfour\n", 1, 4, 4},
		{args{"path": "no end", "tail": 1}, "two", 2, 1, 2},
		{args{"path": "empty", "tail": 1}, "", 1, 0, 0},
	} {
		got := h.read(c.args)
		require.Equal(t, []any{c.content, c.first, c.lines, c.total},
			[]any{got.Content, got.First, got.Lines, got.Total}, c.args)
		require.Nil(t, got.Cut)
		require.Equal(t, app, locate(got.Ref).Root)
		require.Equal(t, filepath.Join(app, filepath.Base(c.args["path"].(string))), locate(got.Ref).Path)
		whole := c.first == 1 && c.lines == c.total
		require.Equal(t, whole, got.Version != "")
	}
	var no *workspace.NotTextError
	require.ErrorAs(t, h.refused("read_file", args{"path": "nul"}), &no)
	require.Equal(t, 2, no.Line)
	require.ErrorAs(t, h.refused("read_file", args{"path": "latin"}), &no)
	require.ErrorContains(t, h.refused("read_file", args{"path": "."}), "list_directory")
	require.ErrorAs(t, h.refused("read_file", args{"path": "nul", "tail": 1}), &no)
	require.ErrorContains(t, h.refused("read_file", args{"path": "a.txt", "tail": 1, "limit": 2}),
		"cannot be combined")
}

func TestReadFileIsBounded(t *testing.T) {
	app := plant(t, fileTree{"a.txt": strings.Repeat("1234567\n", 100),
		"long": strings.Repeat("é", 100) + "\nend\n", "one": "one"})
	h := serve(t, openRoots(t, app), Options{limits: limits{lines: 10, bytes: 20}})
	got := h.read(args{"path": "a.txt", "offset": 3})
	require.Equal(t, 2, got.Lines)
	require.Equal(t, truncation{Unit: "bytes", Limit: 20, After: "line 4",
		How: "Continue with offset 5."}, *got.Cut)
	got = h.read(args{"path": "long"})
	require.Equal(t, strings.Repeat("é", 10), got.Content)
	require.Equal(t, truncation{Unit: "bytes", Limit: 20, After: "the beginning of line 1",
		How: "Continue in it with offset 1 and line_offset 20, or after it with offset 2."}, *got.Cut)
	require.NotContains(t, got.String(), "no newline")
	said := h.read(args{"path": "long", "offset": 1, "line_offset": 20}).String()
	require.Contains(t, said, "lines 1 to 1 of 2, without the first 20 bytes\n"+
		strings.Repeat("é", 10)+"\n[truncated")
	require.Contains(t, said, "line_offset 40")
	last := h.read(args{"path": "long", "line_offset": 190})
	require.Equal(t, strings.Repeat("é", 5)+"\nend\n", last.Content)
	require.Empty(t, last.Version, "it is not all of the file")
	require.Contains(t, h.read(args{"path": "one", "line_offset": 7}).String(),
		"line 1 has only 3 bytes")
	h = serve(t, openRoots(t, app), Options{limits: limits{lines: 10}})
	got = h.read(args{"path": "a.txt"})
	require.Equal(t, truncation{Unit: "lines", Limit: 10, After: "line 10",
		How: "Continue with offset 11."}, *got.Cut)
	require.Empty(t, got.Version)
	require.Nil(t, h.read(args{"path": "a.txt", "limit": 9}).Cut,
		"the limit of the call is not a truncation")
	require.NotNil(t, h.read(args{"path": "a.txt", "limit": 11}).Cut)
}

// A few lines of a large file are read without the rest of it.
func TestReadFileReadsOnlyWhatItNeeds(t *testing.T) {
	app := plant(t, fileTree{"medium": strings.Repeat("line\n", 100_000),
		"nul": strings.Repeat("a\n", 1<<20) + "\x00\n", "utf16": "\xff\xfea\n"})
	h := serve(t, openRoots(t, app), Options{})
	said := h.said("read_file", args{"path": "medium", "limit": 1})
	require.Contains(t, said, ", lines 1 to 1 and more follow\nline\n")
	require.Equal(t, 100_000, h.read(args{"path": "medium"}).Total)
	got := h.read(args{"path": "medium", "tail": 3000})
	require.Equal(t, []int{98_001, 2000, 100_000}, []int{got.First, got.Lines, got.Total})
	var no *workspace.NotTextError
	require.ErrorAs(t, h.refused("read_file", args{"path": "nul", "tail": 4}), &no)
	require.Equal(t, "a\n", h.read(args{"path": "nul", "limit": 1}).Content)
}

// Clause A20.
func TestRelativePathsStartAtCwd(t *testing.T) {
	app, lib := plant(t, fileTree{"both": "app\n"}), plant(t,
		fileTree{"both": "lib\n", "only": "lib\n", "sub/x": ""})
	h := serve(t, openRoots(t, app, lib), Options{})
	require.Equal(t, "app\n", h.read(args{"path": "both"}).Content)
	for name, a := range map[string]args{
		"read_file": {"path": "only"}, "file_info": {"path": "only"}, "list_directory": {"path": "sub"}, "find_files": {"path": "sub"},
		"directory_tree": {"path": "sub"}, "read_files": {"paths": []string{
			"only"}}, "read_media": {"path": "only"},
		"search": {"path": "sub", "pattern": "x"}, "edit_file": {"path": "only", "old_text": "l",
			"new_text": "L"},
	} {
		err := h.refused(name, a)
		require.ErrorContains(t, err, "Relative paths start at "+app, name)
		require.ErrorContains(t, err, "did you mean "+filepath.Join(lib, pathIn(encode(a))), name)
	}
	h.said("write_file", args{"path": "new", "content": "x\n"})
	require.Equal(t, fileTree{"both": "app\n", "new": "x\n"}, planted(t, app))
	labelled := filepath.Join(filepath.Base(lib), "only") // as answers name it
	require.ErrorContains(t, h.refused("read_file", args{"path": labelled}),
		"did you mean "+filepath.Join(lib, "only")+"?")
}

// A read that finds nothing names the file whose name looks the same.
func TestNamesThatLookAlike(t *testing.T) {
	app, h := servePlanted(t, fileTree{"Screenshot 9.41\u202fAM.txt": "a", "cafe\u0301.md": "b", "x/README.md": "c",
		"other": "d", "soft\u00adhyphen": "f", "zero\u200bwidth": "g"})
	for path, other := range map[string]string{
		"Screenshot 9.41 AM.txt": "Screenshot 9.41", "caf\u00e9.md": "cafe", "x/Readme.md": "README.md",
		"softhyphen": "soft", "zero\u2060width": "zero",
	} {
		err := h.refused("read_file", args{"path": path})
		require.ErrorIs(t, err, os.ErrNotExist)
		require.ErrorContains(t, err, filepath.Join(app, filepath.Dir(path), other))
		require.ErrorContains(t, err, "whose name looks like it")
	}
	for _, path := range []string{"others", "caf\u00e9/other", "none/README"} {
		require.NotContains(t, h.refused("read_file", args{"path": path}).Error(), "looks like")
	}
}

// Whoever decides about a change learns of an entry whose name looks the same as the new one.
func TestChangesBesideLookAlikes(t *testing.T) {
	narrow, decomposed := "Screenshot 9.41\u202fAM.txt", "cafe\u0301"
	app, h := servePlanted(t, fileTree{narrow: "a", decomposed + "/f": "b", "README": "c", "move": "d"})
	if _, err := os.Stat(filepath.Join(app, "caf\u00e9")); err == nil {
		t.Skip("the disk does not tell the forms of Unicode apart")
	}
	h.decide = func(Change) error { return errors.New("no") }
	for _, c := range []struct {
		tool, path, alike string
	}{
		{"write_file", "Screenshot 9.41 AM.txt", narrow},
		{"write_file", narrow, ""},
		{"write_file", "caf\u00e9", decomposed},
		{"create_directory", "caf\u00e9", decomposed},
		{"write_file", "readme", ""},
		{"write_file", "new", ""},
		{"write_file", "caf\u00e9/f", ""}, // its folder does not exist, and is named
		{"move_file", "caf\u00e9", decomposed},
		{"move_file", "moved", ""},
	} {
		h.asked = nil
		in := args{"path": c.path}
		switch c.tool {
		case "write_file":
			in["content"] = "new"
		case "move_file":
			in = args{"path": "move", "to": c.path}
		}
		_ = h.refused(c.tool, in)
		want := c.alike
		if want != "" {
			want = filepath.Join(app, want)
		}
		require.Len(t, h.asked, 1)
		require.Equal(t, want, h.asked[0].Alike, "%s %q", c.tool, c.path)
	}
}

package tools

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// maxReplacements is the bound of the edits of one call.
const maxReplacements = 1000

func TestEditFile(t *testing.T) {
	app := plant(t, fileTree{"a": "x := 1\ny := 1\n", "crlf": "a\r\nb\r\n", "mixed": "a\r\nb\n",
		"nul": "a\x00", "bom": "\ufeffx\n"})
	h := serve(t, openRoots(t, app), Options{limits: limits{fileSize: 100}})
	for _, c := range []struct {
		args args
		want string
	}{
		{args{"path": "a", "old_text": "x := 1\n", "new_text": ""}, "y := 1\n"},
		{args{"path": "a", "old_text": "1", "new_text": "2", "replace_all": true},
			"x := 2\ny := 2\n"},
		{args{"path": "crlf", "old_text": "a\nb", "new_text": "a\nc\nb"}, "a\r\nc\r\nb\r\n"},
		{args{"path": "mixed", "old_text": "b\n", "new_text": "c\n"}, "a\r\nc\n"},
		{args{"path": "mixed", "old_text": "a\nb", "new_text": "2\n3"}, "2\r\n3\n"},
		{args{"path": "bom", "old_text": "x", "new_text": "y"}, "\ufeffy\n"},
	} {
		path := filepath.Join(app, c.args["path"].(string))
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, h.said("edit_file", c.args), "\n@@ -1")
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, c.want, string(after), c.args)
		require.NoError(t, os.WriteFile(path, before, 0o600))
	}
	before, asked := planted(t, app), len(h.asked)
	require.ErrorContains(t, h.refused("edit_file",
		args{"path": "a", "old_text": "1", "new_text": "2"}), "2 times, first in lines 1 and 2")
	require.ErrorContains(t, h.refused("edit_file",
		args{"path": "a", "old_text": "z", "new_text": "2"}), "does not contain the text")
	require.ErrorIs(t, h.refused("edit_file", args{"path": "new", "old_text": "z",
		"new_text": "2"}), fs.ErrNotExist)
	var no *workspace.NotTextError
	require.ErrorAs(t, h.refused("edit_file", args{"path": "nul", "old_text": "a",
		"new_text": "b"}), &no)
	var large *workspace.TooLargeError
	require.ErrorAs(t, h.refused("edit_file", args{"path": "a", "old_text": "x",
		"new_text": strings.Repeat("x", 100)}), &large)
	require.Len(t, h.asked, asked)
	require.Equal(t, before, planted(t, app))
}

func TestEditFileMakesSeveralReplacements(t *testing.T) {
	app, h := servePlanted(t, fileTree{"a": "one\ntwo\ntwo\n"})
	edits := func(texts ...string) (all []args) {
		for i := 0; i < len(texts); i += 2 {
			all = append(all, args{"old_text": texts[i], "new_text": texts[i+1]})
		}
		return all
	}
	said := h.said("edit_file", args{"path": "a",
		"edits": append(edits("one", "1", "1\n", "zero\n"),
			args{"old_text": "two", "new_text": "2", "replace_all": true})})
	require.Equal(t, fileTree{"a": "zero\n2\n2\n"}, planted(t, app))
	require.Contains(t, said, ", 3 lines, ")
	require.Len(t, h.asked, 1, "they are one change")

	require.ErrorContains(t, h.refused("edit_file",
		args{"path": "a", "edits": edits("zero", "0", "3",
			"4")}), "replacement 2 of 2: a does not contain")
	require.ErrorContains(t, h.refused("edit_file",
		args{"path": "a", "edits": edits("0", "1"), "old_text": "zero", "new_text": "0"}), "not both")
	require.ErrorContains(t, h.refused("edit_file", args{"path": "a"}),
		"give old_text and new_text, or edits")
	require.ErrorContains(t, h.refused("edit_file", args{"path": "a", "old_text": "zero"}),
		"give old_text and new_text, or edits")
	require.Equal(t, fileTree{"a": "zero\n2\n2\n"}, planted(t, app))
	require.Len(t, h.asked, 1)
}

// Small calls that describe a huge text are refused before the text is made.
func TestEditFileComputesSizeFirst(t *testing.T) {
	doubled := make([]args, 40)
	for i := range doubled {
		doubled[i] = args{"old_text": "a", "new_text": "aa", "replace_all": true}
	}
	wide := strings.Repeat(" ", 3<<20)
	app := plant(t, fileTree{
		"small": "aaa\n", "large": strings.Repeat("a", defaultMaxFileSize-1) + "\n", "wide": wide +
			"x\n", "tabs": strings.Repeat("\t", 1<<20) + "x\n", "lines": strings.Repeat("\n",
			defaultMaxFileSize),
	})
	for name, edit := range map[string]args{
		"doubled":          {"path": "small", "edits": doubled},
		"doubled, dry run": {"path": "small", "edits": doubled, "dry_run": true},
		"each byte a KiB": {"path": "large", "old_text": "a",
			"new_text": strings.Repeat("b", 1<<10), "replace_all": true},
		"indented": {"path": "wide", "old_text": "\tx\n",
			"new_text": strings.Repeat("\ty\n", 1000)},
		"indented by a rate": {"path": "tabs", "old_text": "  x\n",
			"new_text": strings.Repeat("    y\n", 1000)},
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, openRoots(t, app), Options{})
			var large *workspace.TooLargeError
			allocated := allocates(func() {
				require.ErrorAs(t, h.refused("edit_file", edit), &large)
			})
			require.Less(t, allocated, uint64(20*defaultMaxFileSize))
			require.Empty(t, h.asked)
		})
	}
	t.Run("lines without indentation", func(t *testing.T) {
		h := serve(t, openRoots(t, app), Options{})
		allocated := allocates(func() {
			h.refused("edit_file", args{"path": "lines", "old_text": "x", "new_text": "y"})
		})
		require.Less(t, allocated, uint64(20*defaultMaxFileSize))
	})
	t.Run("cancelled", func(t *testing.T) {
		h := serve(t, openRoots(t, app), Options{})
		edits := slices.Repeat([]args{{"old_text": "a", "new_text": "a", "replace_all": true}},
			maxReplacements)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := h.set.Call(ctx, "edit_file", h.encode("edit_file",
			args{"path": "large", "edits": edits}))
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("slow", func(t *testing.T) {
		h := serve(t, openRoots(t, app), Options{limits: limits{time: time.Nanosecond}})
		edit := args{"path": "large", "old_text": "a", "new_text": "b", "replace_all": true}
		require.ErrorIs(t, h.refused("edit_file", edit), errTimeLimit)
		require.Empty(t, h.asked)
	})
	t.Run("too many", func(t *testing.T) {
		h := serve(t, openRoots(t, app), Options{})
		raw := encode(args{"path": "small", "edits": slices.Repeat([]args{{"old_text": "a",
			"new_text": "a"}}, maxReplacements+1)})
		_, err := h.set.Call(t.Context(), "edit_file", raw)
		require.ErrorContains(t, err, "1000")
	})
}

// allocates returns the number of bytes that f allocates.
func allocates(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestEditFileDryRun(t *testing.T) {
	app, h := servePlanted(t, fileTree{"a": "one\n"})
	version := h.read(args{"path": "a"}).Version
	edit := args{"path": "a", "old_text": "one", "new_text": "two", "dry_run": true}
	require.Equal(t, location{filepath.Join(app, "a"), app}.String()+" would be changed, 1 line, "+
		"version "+version+"\n@@ -1 +1 @@\n-one\n+two\n", h.said("edit_file", edit))
	require.Empty(t, h.asked)
	require.Equal(t, fileTree{"a": "one\n"}, planted(t, app))
	delete(edit, "dry_run")
	edit["if_version"] = version
	h.said("edit_file", edit)
	require.Equal(t, fileTree{"a": "two\n"}, planted(t, app))
}

func TestEditFileAdaptsIndentation(t *testing.T) {
	for name, c := range map[string]struct{ file, old, new, want string }{
		"deeper": {"if a {\n\t\tb()\n\t\tc()\n}\n", "\tb()\n\tc()\n",
			"\td()\n\t\te()\n", "if a {\n\t\td()\n\t\t\te()\n}\n"},
		"less deep": {"    b()\n", "        b()\n",
			"        c()\n            d()\n", "    c()\n        d()\n"},
		"without indentation": {"x\n    b()\n    c()\n", "b()\nc()", "b()\n  d()",
			"x\n    b()\n      d()\n"},
		"spaces for tabs": {"\ta {\n\t\tb\n\t}\n", "    a {\n        b\n    }",
			"    a {\n        b {\n            c\n        }\n    }", "\ta {\n\t\tb {\n\t\t\tc\n\t\t}\n\t}\n"},
		"tabs for spaces": {"a:\n  b:\n    c\n", "a:\n\tb:\n\t\tc\n",
			"a:\n\tb:\n\t\tc:\n\t\t\td\n", "a:\n  b:\n    c:\n      d\n"},
		"spaces for a tab, shifted": {"\t\ta\n\t\t\tb\n", "a\n    b\n", "a\n    c\n        d\n",
			"\t\ta\n\t\t\tc\n\t\t\t\td\n"},
		"empty lines":         {"\ta\n\n\tb\n", "a\n  \nb\n", "a\n\nc\n", "\ta\n\n\tc\n"},
		"CRLF":                {"\ta\r\n\tb\r\n", "a\nb", "a\nc", "\ta\r\n\tc\r\n"},
		"the end of the file": {"\ta\n\tb", "a\nb", "a\nc", "\ta\n\tc"},
		"removed":             {"x\n\ta\n\tb\ny\n", "  a\n  b\n", "", "x\ny\n"},
	} {
		t.Run(name, func(t *testing.T) {
			app, h := servePlanted(t, fileTree{"a": c.file})
			said := h.said("edit_file", args{"path": "a", "old_text": c.old,
				"new_text": c.new})
			require.Equal(t, fileTree{"a": c.want}, planted(t, app))
			require.Contains(t, said, "indented like the file")
		})
	}
	for name, c := range map[string]struct{ file, old, new, problem string }{
		"other text":                {"\ta\n", "  b\n", "c\n", "does not contain"},
		"part of a line":            {"\tab\n", "  a", "c", "does not contain"},
		"twice":                     {"\ta\nb\n  a\n", "    a\n", "    c\n", "2 times, first in lines 1 and 3"},
		"contradicting indentation": {"\ta\n\t\tb\n", "  a\n  b\n", "  c\n", "does not contain"},
		"unknown indentation":       {"\ta\n\tc\n", "a\nc\n", "a\n    b\nc\n", "does not contain"},
		"tabs and spaces in a line": {"\t a\n\t b\n", "a\nb\n", "c\n", "does not contain"},
		"other line endings":        {"a\r\nb\n", "a \nb\n", "c\n", "does not contain"},
		"not enough room":           {"a\n", "  a\n", " b\n", "does not contain"},
		"only empty lines":          {"a\n\nb\n", " \n \n", "", "does not contain"},
	} {
		t.Run(name, func(t *testing.T) {
			app, h := servePlanted(t, fileTree{"a": c.file})
			require.ErrorContains(t, h.refused("edit_file",
				args{"path": "a", "old_text": c.old, "new_text": c.new}), c.problem)
			require.Equal(t, fileTree{"a": c.file}, planted(t, app))
		})
	}
	for name, c := range map[string]struct{ file, old, new, want string }{
		"spaces after a line": {"a\nb\n", "a  \nb\t\n", "c\n", "c\n"},
		"spaces in the file":  {"a  \nb\n", "a\nb", "c\nd", "c\nd\n"},
		"after the text":      {"a\nb\n", "a ", "c", "c\nb\n"},
		"with indentation":    {"\ta  \n\tb\n", "a\nb\n", "c\nd\n", "\tc\n\td\n"},
		"mixed indentation":   {" \ta\n", " \ta \n", " \tb\n", " \tb\n"},
		"empty lines":         {"a\nb\n", "a\n\n\n", "c\n\n\n", "c\nb\n"},
		"empty lines, joined": {"a\nb\n", "a\n\n", "c", "c\nb\n"},
		"empty lines, gone":   {"a\nb\n", "a\n\n", "", "b\n"},
		"no line ending":      {"a\nb", "b\n", "c\n", "a\nc"},
		"CRLF":                {"a\r\nb\r\n", "a \nb", "c\nd", "c\r\nd\r\n"},
	} {
		t.Run("trailing white space, "+name, func(t *testing.T) {
			app, h := servePlanted(t, fileTree{"a": c.file})
			said := h.said("edit_file", args{"path": "a", "old_text": c.old,
				"new_text": c.new})
			require.Equal(t, fileTree{"a": c.want}, planted(t, app))
			require.Contains(t, said, "white space at the end of a line or of the text")
			require.Equal(t, name == "with indentation",
				strings.Contains(said, "indented like the file"))
		})
	}
	t.Run("an exact match is preferred", func(t *testing.T) {
		app, h := servePlanted(t, fileTree{"a": "\ta\n  a\n"})
		require.NotContains(t, h.said("edit_file",
			args{"path": "a", "old_text": "  a\n", "new_text": "b\n"}), "differs from the file")
		require.Equal(t, fileTree{"a": "\ta\nb\n"}, planted(t, app))
	})
	t.Run("all", func(t *testing.T) {
		app, h := servePlanted(t, fileTree{"a": "\ta\nb\n  a\n"})
		h.said("edit_file", args{"path": "a", "old_text": "    a\n",
			"new_text": "    c\n", "replace_all": true})
		require.Equal(t, fileTree{"a": "\tc\nb\n  c\n"}, planted(t, app))
	})
}

// The lines of a file may end in two ways. An edit of several lines finds them, and keeps that.
func TestEditWithMixedLineEndings(t *testing.T) {
	for name, c := range map[string]struct {
		text, old, new string
		all            bool
		want           string // "" if the text must not be found once
	}{
		"of one kind":    {"a\nb\r\nc\r\nd\n", "b\nc\n", "x\ny\nz\n", false, "a\nx\r\ny\r\nz\r\nd\n"},
		"of the other":   {"a\r\nb\nc\nd\r\n", "b\nc\n", "x\n", false, "a\r\nx\nd\r\n"},
		"of both":        {"a\nb\r\nc\nd", "a\nb\nc\n", "a\nB\nc\ne\n", false, "a\nB\r\nc\ne\nd"},
		"within lines":   {"one\r\ntwo\nthree\n", "ne\ntw", "n\nw", false, "on\r\nwo\nthree\n"},
		"begin with one": {"a\r\nb\nc\n", "\nb", "\nx", false, "a\r\nx\nc\n"},
		"all":            {"a\r\nb\na\nb\r\n", "a\nb\n", "x\n", true, "x\r\nx\n"},
		"twice":          {"a\r\nb\na\nb\r\n", "a\nb\n", "x\n", false, ""},
		"a bare one":     {"a\r\r\nb\nc\n", "\r\r\nb", "x", false, "ax\nc\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := replacement{Old: c.old, New: c.new, All: c.all}
			got, err := r.apply("f", c.text, defaultMaxFileSize)
			if c.want == "" {
				var match *matchError
				require.ErrorAs(t, err, &match)
				require.Equal(t, 2, match.Count)
				require.Equal(t, []int{1, 3}, match.Lines)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

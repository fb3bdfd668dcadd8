package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSearch(t *testing.T) {
	app := plant(t, fileTree{
		".gitignore": "*.log\n", "a.go": "one\nTwo needle\nthree\nneedle\nfive\n", "sub/b.go": "a.b\naxb\r\n", "c.log": "needle\n", "bin": "needle\x00",
	})
	lib := plant(t, fileTree{"d.txt": "Needle\n"})
	h := serve(t, openRoots(t, app, lib), Options{})
	lines := func(r searchResult) (all []string) {
		for _, f := range r.Files {
			rel, err := filepath.Rel(f.Root, f.Path)
			require.NoError(t, err)
			for _, line := range f.Lines {
				sign := "-"
				if line.match {
					sign = ":"
				}
				all = append(all, fmt.Sprintf("%s%s%d%s%s", filepath.ToSlash(rel), sign, line.number,
					sign, line.text))
			}
		}
		return all
	}
	for _, c := range []struct {
		args    args
		want    []string
		matches int
	}{
		{args{"pattern": "needle"}, []string{"a.go:2:Two needle", "a.go:4:needle"}, 2},
		{args{"pattern": "needle", "ignore_case": true},
			[]string{"a.go:2:Two needle", "a.go:4:needle", "d.txt:1:Needle"}, 3},
		{args{"pattern": "^needle$", "context": 1},
			[]string{"a.go-3-three", "a.go:4:needle", "a.go-5-five"}, 1},
		{args{"pattern": "needle", "context": 1},
			[]string{"a.go-1-one", "a.go:2:Two needle", "a.go-3-three", "a.go:4:needle",
				"a.go-5-five"}, 2},
		{args{"pattern": "a.b"}, []string{"sub/b.go:1:a.b", "sub/b.go:2:axb"}, 2},
		{args{"pattern": "a.b", "literal": true}, []string{"sub/b.go:1:a.b"}, 1},
		{args{"pattern": "[", "literal": true}, nil, 0},
		{args{"pattern": "axb$", "path": "sub"}, []string{"sub/b.go:2:axb"}, 1},
		{args{"pattern": "needle", "path": "c.log"}, []string{"c.log:1:needle"}, 1},
		{args{"pattern": "needle", "glob": "*.log", "ignored": "include"},
			[]string{"c.log:1:needle"}, 1},
		{args{"pattern": "needle|a.b", "exclude": []string{"a.*"}},
			[]string{"sub/b.go:1:a.b", "sub/b.go:2:axb"}, 2},
		{args{"pattern": "(?i)needle", "path": lib, "glob": "*.txt"}, []string{"d.txt:1:Needle"},
			1},
	} {
		got := do[searchResult](h, "search", c.args)
		require.Equal(t, c.want, lines(got), c.args)
		require.Equal(t, c.matches, got.Matches)
		require.Nil(t, got.Cut)
	}
	require.Equal(t, 1, do[searchResult](h, "search", args{"pattern": "needle"}).LeftOut.binary)
	require.ErrorContains(t, h.refused("search", args{"pattern": "("}), `invalid pattern "("`)

	none := args{"pattern": "absent"}
	require.Equal(t, "No line matches; 5 files visited\n[left out: 1 binary, 1 that git ignores]\n",
		h.said("search", none))
	none["glob"] = "[a]*.go"
	require.Equal(t, "No line matches; 5 files visited\n[[a] stands for one of these characters: "+
		"write \\[a\\] for a name with brackets]\n[left out: 1 that git ignores]\n",
		h.said("search", none))
	said := h.said("search", args{"pattern": "needle", "context": 1})
	require.Equal(t, filepath.Join(app,
		"a.go")+" (folder "+app+")\n1-one\n2:Two needle\n3-three\n4:needle\n5-five\n\n2 matching lines in 1 file, visited 5\n[left out: 1 binary, 1 that git ignores]\n", said)
}

// A folder that is named is searched even if git ignores everything in it, and a search says when
// ignored files were left out.
func TestSearchOfIgnoredFolders(t *testing.T) {
	for rules, files := range map[string]fileTree{
		"scripts/*\n":                       {"scripts/x.sh": "needle\n"},
		"/scripts/**\n":                     {"scripts/x.sh": "needle\n", "scripts/sub/y": ""},
		"scripts/\n":                        {"scripts/x.sh": "needle\n"},
		"scripts/*\n!scripts/.gitkeep\n":    {"scripts/x.sh": "needle\n", "scripts/.gitkeep": ""},
		"*.sh\n":                            {"scripts/x.sh": "needle\n"},
		"# none, but the folder has some\n": {"scripts/.gitignore": "*\n", "scripts/x.sh": "needle\n"},
	} {
		files[".gitignore"], files["main.go"] = rules, "package main\n"
		h := serve(t, openRoots(t, plant(t, files)), Options{})
		got := do[searchResult](h, "search", args{"pattern": "needle", "path": "scripts"})
		require.Equal(t, 1, got.Matches, rules)
		got = do[searchResult](h, "search", args{"pattern": "needle"})
		require.Zero(t, got.Matches, rules)
		require.Contains(t, got.String(), "that git ignores", rules)
		require.Contains(t, do[foundFiles](h, "find_files", args{}).String(), "that git ignores")
	}
	h := serve(t, openRoots(t, plant(t, fileTree{".gitignore": "scripts/*\n!scripts/keep\n",
		"scripts/keep": "needle\n", "scripts/x.sh": "needle\n"})), Options{})
	got := do[searchResult](h, "search", args{"pattern": "needle", "path": "scripts"})
	require.Equal(t, 1, got.Matches, "not everything is ignored")
	require.Equal(t, 1, got.LeftOut.ignored)
}

func TestSearchIsBounded(t *testing.T) {
	app := plant(t, fileTree{"a": strings.Repeat("needle\n", 5), "b": strings.Repeat("x", 1000) +
		"éneedleé" + strings.Repeat("y", 1000) + "\n"})
	a := filepath.Join(app, "a")
	h := serve(t, openRoots(t, app), Options{limits: limits{matches: 3, line: 40}})
	got := do[searchResult](h, "search", args{"pattern": "needle"})
	require.Equal(t, 3, got.Matches)
	require.Equal(t, truncation{Limit: "matches", Bound: 3, After: a + ":3", How: got.Cut.How,
		Roots: []string{app}}, *got.Cut)
	long := do[searchResult](h, "search", args{"pattern": "needle",
		"path": "b"}).Files[0].Lines[0].text
	require.Contains(t, long, "éneedleé")
	require.LessOrEqual(t, len(long), 40+len("……")+1)

	h = serve(t, openRoots(t, app), Options{limits: limits{matches: 5}})
	require.Nil(t, do[searchResult](h, "search", args{"pattern": "needle", "path": "a"}).Cut,
		"it just fits")
	h = serve(t, openRoots(t, app), Options{limits: limits{bytes: len(a+app) + 14}})
	got = do[searchResult](h, "search", args{"pattern": "needle"})
	require.Equal(t, 2, got.Matches)
	require.Equal(t, "bytes", got.Cut.Limit)
}

// Clause C9.
func TestNamesThatAreNotUnicode(t *testing.T) {
	app := plant(t, fileTree{"a": "needle\n"})
	if os.WriteFile(filepath.Join(app, "\xff"), []byte("needle\n"), 0o600) != nil {
		t.Skip("this file system has no such names")
	}
	h := serve(t, openRoots(t, app), Options{})
	require.Contains(t, h.said("list_directory", args{}), "[left out: 1 with names that are not")
	require.Equal(t, 1, do[foundFiles](h, "find_files", args{}).LeftOut.unnameable)
	require.Equal(t, 1, do[searchResult](h, "search", args{"pattern": "needle"}).LeftOut.unnameable)

	require.NoError(t, os.Mkdir(filepath.Join(app, "d\xff"), 0o700))
	symlink(t, "\xff", filepath.Join(app, "file"))
	require.NoError(t, os.WriteFile(filepath.Join(app, "d\xff/a"), nil, 0o600))
	symlink(t, "d\xff", filepath.Join(app, "dir"))
	require.Contains(t, h.said("list_directory", args{"path": "dir"}), `d\xff`)
	require.Contains(t, h.said("file_info", args{"path": "file"}), `\xff`)
	require.Contains(t, h.said("read_file", args{"path": "file"}), `\xff`)
	for name, a := range map[string]args{
		"write_file": {"path": "file", "content": "x"}, "edit_file": {"path": "file",
			"old_text": "n", "new_text": "x"},
		"create_directory": {"path": "dir/new"}, "delete_file": {"path": "dir/a"}, "move_file": {"path": "a", "to": "dir/b"},
	} {
		require.ErrorContains(t, h.refused(name, a), "cannot be shown", name)
	}
	require.Empty(t, h.asked)
}

// Results of many files are held in memory until they are delivered.
func TestSearchBoundsMemoryPerFile(t *testing.T) {
	text := strings.Repeat("hit\n"+strings.Repeat(strings.Repeat("x", 99)+"\n", 9), 100)
	app := plant(t, fileTree{"a.txt": text, "b.txt": "hit\n"})
	p, err := newPattern("hit", true, false)
	require.NoError(t, err)
	kept := map[string]int{}
	w := walkOf(openRoots(t, app))
	w.query = &query{p, 20, limits{bytes: 5000}.withDefaults()}
	w.each = func(f found) bool {
		for _, line := range f.lines {
			kept[f.ref().Rel()] += len(line.text)
		}
		return true
	}
	require.NoError(t, w.run(t.Context()))
	require.Equal(t, 3, kept["b.txt"])
	require.Greater(t, kept["a.txt"], 5000)
	require.Less(t, kept["a.txt"], 7000)

	h := serve(t, openRoots(t, app), Options{limits: limits{bytes: 5000}})
	found := do[searchResult](h, "search", args{"pattern": "hit", "context": 20})
	require.Equal(t, "bytes", found.Cut.Limit, "it is said")
	require.Len(t, found.Files, 1)
}

package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/text"
)

func TestSearch(t *testing.T) {
	app := plant(t, fileTree{
		".gitignore": "*.log\n", "a.go": "one\nTwo needle\nthree\nneedle\nfive\n", "sub/b.go": "a.b\naxb\r\n", "c.log": "needle\n", "bin": "needle\x00",
	})
	lib := plant(t, fileTree{"d.txt": "Needle\n"})
	h := serve(t, openRoots(t, app, lib), Options{})
	// lines returns what is shown of files, each line with the name of its file.
	lines := func(said string) (all []string) {
		file := ""
		for line := range strings.Lines(said) {
			line = strings.TrimSuffix(line, "\n")
			path, _, isFile := strings.Cut(line, " (folder ")
			switch {
			case isFile:
				file = filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(path, app), lib))[1:]
			case file != "" && line != "" && line[0] <= '9' && strings.ContainsAny(line[1:2], ":-"):
				all = append(all, file+line[1:2]+line)
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
		said := h.said("search", c.args)
		require.Equal(t, c.want, lines(said), c.args)
		if c.matches > 0 {
			require.Contains(t, said, text.Count(c.matches, "matching line", "matching lines")+" in ")
		}
		require.NotContains(t, said, "[truncated")
	}
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
		require.Len(t, h.found("search", args{"pattern": "needle", "path": "scripts"}), 1, rules)
		require.Regexp(t, "^No line matches.*\n.*that git ignores", h.said("search",
			args{"pattern": "needle"}), rules)
		require.Contains(t, h.said("find_files", args{}), "that git ignores")
	}
	h := serve(t, openRoots(t, plant(t, fileTree{".gitignore": "scripts/*\n!scripts/keep\n",
		"scripts/keep": "needle\n", "scripts/x.sh": "needle\n"})), Options{})
	said := h.said("search", args{"pattern": "needle", "path": "scripts"})
	require.Contains(t, said, "1 matching line in", "not everything is ignored")
	require.Contains(t, said, "1 that git ignores")
}

func TestSearchIsBounded(t *testing.T) {
	app := plant(t, fileTree{"a": strings.Repeat("needle\n", 5), "b": strings.Repeat("x", 1000) +
		"éneedleé" + strings.Repeat("y", 1000) + "\n"})
	a := filepath.Join(app, "a")
	h := serve(t, openRoots(t, app), Options{limits: limits{matches: 3, line: 40}})
	said := h.said("search", args{"pattern": "needle"})
	require.Contains(t, said, "\n3 matching lines in 1 file, visited 2\n[truncated after "+a+
		":3: the limit of 3 matches was reached. Not searched completely: "+app+". Use a narrower "+
		"pattern, a glob, or a path.]\n")
	long := strings.Split(h.said("search", args{"pattern": "needle", "path": "b"}), "\n")[1]
	require.Contains(t, long, "éneedleé")
	require.LessOrEqual(t, len(long), len("1:")+40+len("……")+1)

	for most, cut := range map[int]bool{4: true, 5: false} {
		h = serve(t, openRoots(t, app), Options{limits: limits{matches: most}})
		require.Equal(t, cut, strings.Contains(
			h.said("search", args{"pattern": "needle", "path": "a"}), "truncated"), most)
	}
	h = serve(t, openRoots(t, app), Options{limits: limits{bytes: len(a+app) + 30}})
	said = h.said("search", args{"pattern": "needle"})
	require.Contains(t, said, "\n2 matching lines in 1 file")
	require.Contains(t, said, " bytes was reached")
}

// Clause C9.
func TestNamesThatAreNotUnicode(t *testing.T) {
	app := plant(t, fileTree{"a": "needle\n"})
	if os.WriteFile(filepath.Join(app, "\xff"), []byte("needle\n"), 0o600) != nil {
		t.Skip("this file system has no such names")
	}
	h := serve(t, openRoots(t, app), Options{})
	require.Contains(t, h.said("list_directory", args{}), "[left out: 1 with names that are not")
	require.Contains(t, h.said("find_files", args{}), "[left out: 1 with names that are not")
	require.Contains(t, h.said("search", args{"pattern": "needle"}),
		"[left out: 1 with names that are not")

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
	w.each = func(f found) *truncation {
		for _, line := range f.lines {
			kept[f.ref().Rel()] += len(line.text)
		}
		return nil
	}
	runWalk(t, w)
	require.Equal(t, 3, kept["b.txt"])
	require.Greater(t, kept["a.txt"], 5000)
	require.Less(t, kept["a.txt"], 7000)

	h := serve(t, openRoots(t, app), Options{limits: limits{bytes: 5000}})
	said := h.said("search", args{"pattern": "hit", "context": 20})
	require.Contains(t, said, "the limit of 5000 bytes was reached")
	require.Contains(t, said, " in 1 file, ")
}

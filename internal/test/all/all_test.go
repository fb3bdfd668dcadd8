package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// One package passes, one has a test that fails and one that never ends, and one is not compiled.
const events = `
{"Action":"run","Package":"github.com/acp-agent/acp-agent/acp","Test":"TestA"}
{"Action":"output","Package":"github.com/acp-agent/acp-agent/acp","Test":"TestA","Output":"quiet\n"}
{"Action":"pass","Package":"github.com/acp-agent/acp-agent/acp","Test":"TestA","Elapsed":2.5}
{"Action":"output","Package":"github.com/acp-agent/acp-agent/acp","Test":"TestB","Output":"    x.go:1: needs npm: testdata/node has no x\n"}
{"Action":"skip","Package":"github.com/acp-agent/acp-agent/acp","Test":"TestB","Elapsed":0}
{"Action":"pass","Package":"github.com/acp-agent/acp-agent/acp","Elapsed":2.6}
{"Action":"output","Package":"github.com/acp-agent/acp-agent/discovery","Test":"TestC/sub","Output":"is wrong\n"}
{"Action":"fail","Package":"github.com/acp-agent/acp-agent/discovery","Test":"TestC/sub","Elapsed":0.1}
{"Action":"fail","Package":"github.com/acp-agent/acp-agent/discovery","Test":"TestC","Elapsed":0.2}
{"Action":"output","Package":"github.com/acp-agent/acp-agent/discovery","Test":"TestD","Output":"panic: hangs\n"}
{"Action":"fail","Package":"github.com/acp-agent/acp-agent/discovery","Elapsed":3}
{"ImportPath":"github.com/acp-agent/acp-agent/workspace [github.com/acp-agent/acp-agent/workspace.test]","Action":"build-output","Output":"x.go:1: undefined: y\n"}
{"ImportPath":"github.com/acp-agent/acp-agent/workspace [github.com/acp-agent/acp-agent/workspace.test]","Action":"build-fail"}
{"Action":"fail","Package":"github.com/acp-agent/acp-agent/workspace","Elapsed":0,"FailedBuild":"github.com/acp-agent/acp-agent/workspace [github.com/acp-agent/acp-agent/workspace.test]"}
`

func TestReport(t *testing.T) {
	var out strings.Builder
	r := newReport(&out)
	r.leaveOut("gcc")
	require.NoError(t, r.read(strings.NewReader(strings.TrimPrefix(events, "\n"))))
	require.Error(t, r.err())
	r.print(time.Minute)
	require.NotContains(t, out.String(), "quiet")
	require.Contains(t, out.String(), "undefined: y")
	_, end, found := strings.Cut(out.String(), "\nThe slowest tests:\n")
	require.True(t, found, out.String())
	require.Equal(t, `    2.5 s  acp TestA
    0.2 s  discovery TestC
    0.0 s  acp TestB

Left out on this machine:
  gcc is missing: data races: the race detector needs a C compiler
  npm is missing, tests skipped: 1: editors, agents, MCP servers and clients of others, PostgreSQL, a browser, and the packages of npm

Failed:
  discovery TestC/sub
  discovery TestC
  discovery TestD, which has not ended
  workspace

Passed: 1. Failed: 4. Packages: 2. Time: 1m0s.
`, end)
}

// top is the root of the checkout.
const top = "../../.."

// Every package in which goroutines are started is tested with the race detector, except those that
// are listed here.
func TestConcurrentPackagesAreRaced(t *testing.T) {
	elsewhere := []string{
		"cmd/acp-agent",    // make kills runs its scripts with the race detector
		"internal/inspect", // a browser walks through large pages
		"internal/release", "internal/test/*", "internal/test/*/*", "internal/test/*/*/*",
	}
	for dir := range concurrent(t) {
		raced := slices.Contains(slices.Concat(smallRaced, largeRaced), "./"+dir)
		listed := slices.ContainsFunc(elsewhere, func(pattern string) bool {
			matches, err := filepath.Match(pattern, dir)
			require.NoError(t, err)
			return matches
		})
		require.True(t, raced || listed, "add %s to smallRaced", dir)
	}
}

// concurrent returns the directories of packages with a go statement outside of tests.
func concurrent(t *testing.T) map[string]bool {
	t.Helper()
	dirs := make(map[string]bool)
	for path, file := range parsed(t, func(name string) bool { return !isTest(name) }) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				dirs[filepath.Dir(path)] = true
			case *ast.CallExpr: // of a sync.WaitGroup
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Go" {
					dirs[filepath.Dir(path)] = true
				}
			}
			return true
		})
	}
	return dirs
}

// What runs with the race detector, or does not, by its name exists.
func TestNamesOfRacedTestsExist(t *testing.T) {
	var large []string
	all := make(map[string]bool)
	for path, file := range parsed(t, isTest) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				all[f.Name.Name] = true
				if slices.Contains(largeRaced, "./"+filepath.Dir(path)) {
					large = append(large, f.Name.Name)
				}
			}
		}
	}
	for _, part := range atOnce {
		require.True(t, slices.ContainsFunc(large, regexp.MustCompile(part).MatchString), part)
	}
	for _, name := range alone {
		require.True(t, all[name], name)
	}
	for _, dir := range longest {
		require.DirExists(t, filepath.Join(top, dir))
	}
}

func isTest(name string) bool { return strings.HasSuffix(name, "_test.go") }

// parsed returns the Go files of the checkout whose names are wanted, by path.
func parsed(t *testing.T, want func(name string) bool) map[string]*ast.File {
	t.Helper()
	files, set := make(map[string]*ast.File), token.NewFileSet()
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name[0] == '.' && path != top):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go" || !want(name):
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err == nil {
			relative, _ := filepath.Rel(top, path)
			files[relative] = file
		}
		return err
	})
	require.NoError(t, err)
	return files
}

// Packages are installed again after a change of what is to be installed.
func TestOutdated(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.Equal(t, []string{dir}, outdated([]string{dir}))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "node_modules"), 0o700))
	require.NoError(t, os.WriteFile(stamp(dir), nil, 0o600))
	require.Empty(t, outdated([]string{dir}))
	later := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "package-lock.json"), later, later))
	require.Equal(t, []string{dir}, outdated([]string{dir}))
}

package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// repository is the directory of go.mod, relative to this package.
const repository = "../../.."

const module = "github.com/acp-agent/acp-agent"

// A source is one Go file of the repository.
type source struct {
	path string // slash-separated, from the repository
	test bool   // its name ends in _test.go
	fset *token.FileSet
	file *ast.File
}

func (s source) dir() string { return path.Dir(s.path) }

func (s source) at(n ast.Node) string {
	return s.path + ":" + strconv.Itoa(s.fset.Position(n.Pos()).Line)
}

// imports lists the import paths of s.
func (s source) imports() []string {
	var all []string
	for _, i := range s.file.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err == nil {
			all = append(all, p)
		}
	}
	return all
}

// sources returns every Go file of the repository that the go command would see on some platform.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := parsed()
	require.NoError(t, err)
	return all
}

// parsed parses the files once for all tests, which must not change them.
var parsed = sync.OnceValues(func() (all []source, err error) {
	paths, err := walk()
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		if path.Ext(p) != ".go" || slices.Contains(strings.Split(p, "/"), "testdata") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(p)))
		if err != nil {
			return nil, err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, p, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		all = append(all, source{
			path: p,
			test: strings.HasSuffix(p, "_test.go"),
			fset: fset,
			file: file,
		})
	}
	return all, nil
})

// files lists the repository's files, sorted, without what others installed there.
func files(t *testing.T) []string {
	t.Helper()
	all, err := walk()
	require.NoError(t, err)
	return all
}

func walk() (all []string, err error) {
	err = fs.WalkDir(os.DirFS(repository), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." {
			if n := d.Name(); n == "node_modules" || n == "bin" || n[0] == '.' || n[0] == '_' {
				return fs.SkipDir
			}
		}
		if d.Type().IsRegular() {
			all = append(all, p)
		}
		return nil
	})
	return all, err
}

package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform"
)

// clauseItem matches a clause of docs/internals/conformance.md: its id, the requirement and, in
// italics, what is missing.
var clauseItem = regexp.MustCompile(`(?m)^- \*\*(` + id + `)\*\* (?:.|\n  )+$`)

// clauses returns the text of each clause of docs/internals/conformance.md by its id.
func clauses(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs", "internals", "conformance.md"))
	require.NoError(t, err)
	all := map[string]string{}
	for _, m := range clauseItem.FindAllStringSubmatch(string(text), -1) {
		require.NotContains(t, all, m[1], "a clause is listed twice")
		all[m[1]] = m[0]
	}
	require.Len(t, all, strings.Count(string(text), "\n- **"), "an item is not a clause")
	return all
}

func TestEveryBuiltClauseHasATest(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range claims(t) {
		tested[c.id] = true
	}
	for id, text := range clauses(t) {
		if !strings.HasSuffix(text, "*Open.*") && !tested[id] {
			t.Errorf("docs/internals/conformance.md lists %s, but no test carries its id: write one, or end it with *Open.*", id)
		}
	}
}

func TestEveryTestNamesAClauseThatExists(t *testing.T) {
	known := clauses(t)
	for _, c := range claims(t) {
		if known[c.id] == "" {
			t.Errorf("%s: %s names %s, which is not in docs/internals/conformance.md", c.path, c.test, c.id)
		}
	}
}

// The checks of acp-agent conform are named for clauses.
func TestEveryCheckNamesAClauseThatExists(t *testing.T) {
	checks, err := conform.Checks(nil)
	require.NoError(t, err)
	known := clauses(t)
	for _, c := range checks {
		clause, _, named := strings.Cut(c.ID, ".")
		require.True(t, named && known[clause] != "", c.ID)
	}
}

// A claim is a test that carries the id of a clause.
type claim struct {
	id   string // such as A10
	test string // such as TestLoad
	path string // its file, slash-separated, relative to the repository
}

const id = `[APWCMSDBXNREKG][0-9]{1,2}`

var (
	inComment  = regexp.MustCompile(`(?m)^Clauses? (` + id + `(?:, ` + id + `)*)\.$`)
	inSubtest  = regexp.MustCompile(`^(` + id + `)(?:/|$)`)
	inFileName = regexp.MustCompile(`^((?:` + id + `[-_])*` + id + `)(?:[-_.])`)
)

func claims(t *testing.T) []claim {
	t.Helper()
	var all []claim
	for _, s := range sources(t) {
		if s.test || slices.Contains(s.imports(), "testing") {
			all = append(all, inSource(s)...)
		}
	}
	for _, p := range files(t) {
		all = append(all, inTranscript(p)...)
	}
	return all
}

// inTranscript returns the ids in the name of a transcript, such as w3-long-line.txtar.
func inTranscript(p string) []claim {
	m := inFileName.FindStringSubmatch(strings.ToUpper(path.Base(p)))
	if path.Ext(p) != ".txtar" || m == nil {
		return nil
	}
	var all []claim
	for id := range strings.FieldsFuncSeq(m[1], func(r rune) bool { return r == '-' || r == '_' }) {
		all = append(all, claim{id: id, test: path.Base(p), path: p})
	}
	return all
}

// inSource returns the ids in the comments of s's tests, and in the names of their subtests. A
// subtest is recognised by the first argument of Run, and by the keys, the field "name" or the
// first element of a table.
func inSource(s source) []claim {
	var all []claim
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || strings.HasPrefix(f.Name.Name, "Benchmark") {
			continue
		}
		add := func(id string) { all = append(all, claim{id: id, test: f.Name.Name, path: s.path}) }
		if m := inComment.FindStringSubmatch(f.Doc.Text()); m != nil && s.test && f.Recv == nil {
			for id := range strings.SplitSeq(m[1], ", ") {
				add(id)
			}
		}
		for _, name := range subtests(f.Body) {
			if m := inSubtest.FindStringSubmatch(name); m != nil {
				add(m[1])
			}
		}
	}
	return all
}

func subtests(body *ast.BlockStmt) []string {
	var names []string
	add := func(e ast.Expr) {
		if b, ok := e.(*ast.BinaryExpr); ok {
			e = b.X // "A10/" + name
		}
		if c, ok := e.(*ast.CallExpr); ok && len(c.Args) > 0 {
			e = c.Args[0] // fmt.Sprintf("A10/%s", name)
		}
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			name, _ := strconv.Unquote(l.Value)
			names = append(names, name)
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Run" && len(n.Args) > 0 {
				add(n.Args[0])
			}
		case *ast.CompositeLit:
			for i, e := range n.Elts {
				switch kv, ok := e.(*ast.KeyValueExpr); {
				case !ok && i == 0:
					add(e)
				case ok && isName(kv.Key):
					add(kv.Value)
				case ok:
					add(kv.Key)
				}
			}
		}
		return true
	})
	return names
}

func isName(key ast.Expr) bool {
	i, ok := key.(*ast.Ident)
	return ok && strings.EqualFold(i.Name, "name")
}

func TestClaims(t *testing.T) {
	const text = `package p
// Clause A10.
func TestOmitted(t *testing.T) {}
// Clauses W2, W3.
func TestBadLines(t *testing.T) {}
// TestURIs also has text.
//
// Clause M11.
func TestURIs(t *testing.T) { t.Run("M10/also", nil) }
// Not a Clause A11.
func TestOther(t *testing.T) {}
// Clause W2.
func FuzzLine(f *testing.F) {}
// Clause A1.
func BenchmarkFast(b *testing.B) { b.Run("A1/x", nil) }
func helper(t *testing.T) {
	t.Run("S5/file mode", nil)
	t.Run("W4/"+name, nil)
	t.Run(fmt.Sprintf("W7/%d turns", n), nil)
	t.Run("no id", nil)
	for _, c := range []struct{ name string }{{name: "C1/dots"}} {}
	for _, c := range []struct{ name, x string }{{"C2/twin", "C3/not"}} {}
	for n, c := range map[string]int{"C4/dangling": 1} {}
}
`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p_test.go", text, parser.SkipObjectResolution|parser.ParseComments)
	require.NoError(t, err)
	var found []string
	for _, c := range inSource(source{path: "p_test.go", test: true, fset: fset, file: file}) {
		found = append(found, c.id+" "+c.test)
	}
	require.ElementsMatch(t, []string{
		"A10 TestOmitted", "W2 TestBadLines", "W3 TestBadLines", "M11 TestURIs", "M10 TestURIs", "W2 FuzzLine",
		"S5 helper", "W4 helper", "W7 helper", "C1 helper", "C2 helper", "C4 helper",
	}, found)
	require.Len(t, inTranscript("acp/testdata/w2-w3-lines.txtar"), 2)
	require.Empty(t, inTranscript("acp/testdata/initialize.txtar"))
}

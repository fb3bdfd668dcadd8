package conformance

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A claim is a test that says which clause it proves.
type claim struct {
	id   string // such as A10
	name string // such as TestA10_Omitted, or TestLoad/A10/omitted
	path string // its file, slash-separated, from the repository
	on   []string
}

const id = `[APWCMS][0-9]+`

var (
	inTestName = regexp.MustCompile(`^(?:Test|Fuzz)((?:` + id + `_)*` + id + `)(?:_|$)`)
	inSubtest  = regexp.MustCompile(`^(` + id + `)(?:/|$)`)
	inFileName = regexp.MustCompile(`^((?:` + id + `[-_])*` + id + `)(?:[-_.])`)
	oneID      = regexp.MustCompile(`^` + id + `$`)
)

// claims finds every test that carries a clause's id.
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
	slices.SortFunc(all, func(a, b claim) int {
		if c := strings.Compare(a.path, b.path); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	return slices.CompactFunc(all, func(a, b claim) bool {
		return a.id == b.id && a.name == b.name && a.path == b.path
	})
}

// inTranscript reads the ids in the name of a txtar file: w3-long-line.txtar.
func inTranscript(p string) []claim {
	if path.Ext(p) != ".txtar" {
		return nil
	}
	m := inFileName.FindStringSubmatch(strings.ToUpper(path.Base(p)))
	if m == nil {
		return nil
	}
	var all []claim
	for _, id := range strings.FieldsFunc(m[1], func(r rune) bool { return r == '-' || r == '_' }) {
		all = append(all, claim{id: id, name: path.Base(p), path: p})
	}
	return all
}

// inSource reads the ids in the names of s's tests, and of their subtests where they are others.
func inSource(s source) []claim {
	var all []claim
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || strings.HasPrefix(f.Name.Name, "Benchmark") {
			continue
		}
		var own []string
		if s.test && f.Recv == nil {
			own = inFunctionName(f.Name.Name)
		}
		for _, id := range own {
			all = append(all, claim{id: id, name: f.Name.Name, path: s.path, on: s.on})
		}
		for _, sub := range subtests(f.Body) {
			m := inSubtest.FindStringSubmatch(sub)
			if m != nil && !slices.Contains(own, m[1]) {
				all = append(all, claim{id: m[1], name: f.Name.Name + "/" + sub, path: s.path, on: s.on})
			}
		}
	}
	return all
}

func inFunctionName(name string) []string {
	if strings.HasPrefix(name, "Example") {
		var ids []string
		for _, part := range strings.Split(name, "_")[1:] {
			if up := strings.ToUpper(part); part != up && oneID.MatchString(up) {
				ids = append(ids, up)
			}
		}
		return ids
	}
	m := inTestName.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	return strings.Split(m[1], "_")
}

// subtests collects what may name a subtest in a function: the first argument of Run, and in
// tables the field "name", the first element, and the keys.
func subtests(body *ast.BlockStmt) []string {
	var names []string
	add := func(e ast.Expr) {
		if n := begin(e); n != "" {
			names = append(names, strings.ReplaceAll(n, " ", "_"))
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

var verb = regexp.MustCompile(`%[^a-zA-Z]*[a-zA-Z]`)

// begin is how the string e begins as far as the source tells, with … for the rest.
func begin(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			s, _ := strconv.Unquote(e.Value)
			return s
		}
	case *ast.BinaryExpr:
		if s := begin(e.X); s != "" {
			return strings.TrimSuffix(s, "…") + "…"
		}
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" && len(e.Args) > 0 {
			return verb.ReplaceAllString(begin(e.Args[0]), "…")
		}
	}
	return ""
}

package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// go doc shows nothing of a type in internal. A public package mentions such a type only as an
// alias, whose comment has the fields.
func TestGoDocShowsAllTypes(t *testing.T) {
	all := sources(t)
	fields := make(map[string][]string) // of structs in internal, by directory and name
	for _, s := range all {
		for name, spec := range types(s) {
			if structure, ok := spec.Type.(*ast.StructType); ok && isInternal(s.dir()) {
				fields[s.dir()+"."+name] = exportedFields(structure)
			}
		}
	}
	for _, s := range all {
		if s.test || isInternal(s.dir()) || strings.HasPrefix(s.path, "cmd/") || s.file.Name.Name == "main" {
			continue
		}
		s.fset = token.NewFileSet()
		var err error
		s.file, err = parser.ParseFile(s.fset, filepath.Join(repository, s.path), nil,
			parser.SkipObjectResolution|parser.ParseComments)
		require.NoError(t, err)
		ast.FileExports(s.file)
		hidden := make(map[string]string) // directories by the name in this file
		for i, path := range s.imports() {
			dir, own := strings.CutPrefix(path, module+"/")
			name := dir[strings.LastIndex(dir, "/")+1:]
			if as := s.file.Imports[i].Name; as != nil {
				name = as.Name
			}
			if own && isInternal(dir) {
				hidden[name] = dir
			}
		}
		hiddenType := func(e ast.Node) string {
			if of, ok := e.(*ast.SelectorExpr); ok {
				if x, ok := of.X.(*ast.Ident); ok && hidden[x.Name] != "" {
					return hidden[x.Name] + "." + of.Sel.Name
				}
			}
			return ""
		}
		check := func(shown ast.Node) {
			ast.Inspect(shown, func(n ast.Node) bool {
				if name := hiddenType(n); name != "" {
					t.Errorf("%s: go doc does not show %s", s.at(n), name)
				}
				return true
			})
		}
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && (f.Recv == nil || hasExportedReceiver(f)) {
				check(f.Type)
			}
		}
		for _, spec := range types(s) {
			if name := hiddenType(spec.Type); spec.Assign == 0 || name == "" {
				check(spec.Type)
			} else {
				for _, field := range fields[name] {
					require.Contains(t, spec.Doc.Text(), field, "the comment of %s in %s", spec.Name, s.path)
				}
			}
		}
	}
}

func isInternal(dir string) bool { return strings.Contains("/"+dir+"/", "/internal/") }

// types returns the exported types of a file, each with its comment.
func types(s source) map[string]*ast.TypeSpec {
	all := make(map[string]*ast.TypeSpec)
	for _, decl := range s.file.Decls {
		if d, ok := decl.(*ast.GenDecl); ok {
			for _, spec := range d.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok && spec.Name.IsExported() {
					if spec.Doc == nil {
						spec.Doc = d.Doc
					}
					all[spec.Name.Name] = spec
				}
			}
		}
	}
	return all
}

func exportedFields(s *ast.StructType) (names []string) {
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			if name.IsExported() {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

func hasExportedReceiver(f *ast.FuncDecl) bool {
	e := f.Recv.List[0].Type
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	id, ok := e.(*ast.Ident)
	return ok && id.IsExported()
}

package conformance

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	goSnippet = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	wholeFile = regexp.MustCompile(`(?m)^package `)
	defined   = regexp.MustCompile(`(?m)^(\w+) := `)
	qualified = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)
)

// snippetImports are the packages that snippets may use by name.
var snippetImports = map[string]string{
	"acp":          module + "/acp",
	"backend":      module + "/acp/backend",
	"context":      "context",
	"io":           "io",
	"proxy":        module + "/acp/proxy",
	"sessionstore": module + "/sessionstore",
	"sqlite":       module + "/sessionstore/sqlite",
	"testing":      "testing",
}

// snippetNames declares what snippets leave to the reader.
const snippetNames = `
func myBackend() backend.Backend { return nil }

type stores struct{}

func (stores) New(string) sessionstore.Store { return nil }

var mystore stores
`

// The Go snippets of the documents compile.
func TestSnippetsCompile(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	require.NoError(t, err)
	rooms, err := filepath.Glob(filepath.Join(repository, "docs", "*", "*.md"))
	require.NoError(t, err)
	pages = append(pages, rooms...)
	found := 0
	for _, page := range append(pages, filepath.Join(repository, "README.md")) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for i, m := range goSnippet.FindAllStringSubmatch(string(text), -1) {
			found++
			if strings.HasPrefix(m[1], serverProgram) { // TestServerProgram runs it
				continue
			}
			t.Run(filepath.Base(page)+" "+strconv.Itoa(i+1), func(t *testing.T) { compile(t, program(m[1])) })
		}
	}
	require.NotZero(t, found)
}

// program returns a package with the snippet, which is a whole file, declarations or statements.
func program(snippet string) string {
	if wholeFile.MatchString(snippet) {
		return snippet
	}
	if !strings.HasPrefix(snippet, "func ") && !strings.HasPrefix(snippet, "type ") {
		var used strings.Builder
		for _, m := range defined.FindAllStringSubmatch(snippet, -1) {
			used.WriteString("_ = " + m[1] + "\n")
		}
		snippet = "func _(ctx context.Context, in io.Reader, out io.Writer, dir string) {\n" +
			snippet + used.String() + "}\n"
	}
	body := snippetNames + snippet
	var imports strings.Builder
	seen := map[string]bool{}
	for _, m := range qualified.FindAllStringSubmatch(body, -1) {
		if path := snippetImports[m[1]]; path != "" && !seen[path] {
			seen[path] = true
			imports.WriteString("import " + strconv.Quote(path) + "\n")
		}
	}
	return "package snippet\n" + imports.String() + body
}

// compile compiles a file as a package of this module, without writing it there.
func compile(t *testing.T, source string) {
	t.Helper()
	compileTo(t, os.DevNull, source)
}

// compileTo is compile with the file for the program.
func compileTo(t *testing.T, program, source string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "snippet.go")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	top, err := filepath.Abs(repository)
	require.NoError(t, err)
	overlay, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(top, "snippet", "snippet.go"): file},
	})
	require.NoError(t, err)
	overlayFile := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlayFile, overlay, 0o600))
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-w",
		"-o", program, "-overlay", overlayFile, "./snippet")
	build.Dir = top
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, source)
}

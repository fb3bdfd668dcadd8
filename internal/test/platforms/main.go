// Command platforms checks that every package of the module and its tests compile for other
// platforms:
//
//	go run ./internal/test/platforms GOOS/GOARCH...
//
// It checks types only, which takes seconds, where compiling everything takes minutes for each
// platform. What others wrote is only read for its declarations. "make cross" compiles the program.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	for _, platform := range os.Args[1:] {
		n, err := check(".", platform)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", platform, err)
			os.Exit(1)
		}
		fmt.Printf("%s: %d packages\n", platform, n)
	}
}

// A pkg is a package as go list describes it, or one together with its tests.
type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	ImportMap  map[string]string
	Module     *struct {
		Main      bool
		GoVersion string
	}
	Error *struct{ Err string }
}

// own reports whether the package belongs to this module.
func (p pkg) own() bool { return p.Module != nil && p.Module.Main }

// check checks all packages in dir for a platform, such as windows/amd64, and returns how many
// there are.
func check(dir, platform string) (n int, err error) {
	system, arch, found := strings.Cut(platform, "/")
	if !found {
		return 0, errors.New("name it as GOOS/GOARCH")
	}
	cmd := exec.Command("go", "list", "-e", "-deps", "-test",
		"-json=ImportPath,Dir,GoFiles,ImportMap,Module,Error", "./...")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", cmd, err)
	}
	c := checker{files: token.NewFileSet(), sizes: types.SizesFor("gc", arch),
		known: map[string]*types.Package{"unsafe": types.Unsafe}}
	listed := json.NewDecoder(strings.NewReader(string(out)))
	for { // each follows what it imports
		var p pkg
		switch err := listed.Decode(&p); {
		case err == io.EOF:
			return n, errors.Join(c.problems...)
		case err != nil:
			return 0, err
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") {
			continue // go test writes the latter
		}
		if p.own() {
			n++
		}
		c.check(p)
	}
}

// A checker checks packages for one platform.
type checker struct {
	files    *token.FileSet
	sizes    types.Sizes
	known    map[string]*types.Package // by import path
	problems []error
}

func (c *checker) check(p pkg) {
	report := func(err error) {
		if p.own() {
			c.problems = append(c.problems, err)
		}
	}
	if p.Error != nil {
		report(errors.New(p.Error.Err))
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil,
			parser.SkipObjectResolution)
		if err != nil {
			report(err)
			continue
		}
		files = append(files, file)
	}
	config := types.Config{
		Importer:         imports{c, p},
		Sizes:            c.sizes,
		IgnoreFuncBodies: !p.own(),
		Error:            report,
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	path, _, _ := strings.Cut(p.ImportPath, " ") // of the package whose tests it is with
	c.known[p.ImportPath], _ = config.Check(path, c.files, files, nil)
}

// imports are what a package imports.
type imports struct {
	*checker
	pkg
}

// Import implements [types.Importer].
func (i imports) Import(path string) (*types.Package, error) {
	if other, ok := i.ImportMap[path]; ok {
		path = other
	}
	if found := i.known[path]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("%s is not listed", path)
}

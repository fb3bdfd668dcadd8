// Package program builds acp-agent once for all tests of a package, and exchanges lines with it as
// package rawrpc does:
//
//	func TestMain(m *testing.M) { program.Main(m, play) }
//
//	p, err := program.Start(program.Options{Command: []string{program.Path(), "--state-dir", dir}})
//	m, err := p.Call(ctx, "initialize", map[string]any{"protocolVersion": 1})
//	…
//	p.CloseInput()
//	code, err := p.Wait(ctx)
//
// It must only be imported by tests.
package program

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// Variable is the environment variable with the path of the program under test. If it is set,
// nothing is built, so that another build, such as one with -race, can be tested. It is always set
// once the program is built.
const Variable = "ACP_AGENT_BINARY"

// Remote is the environment variable with the path of the program that the package remote starts.
// If it is set, the program under test is acp-agent over the network.
const Remote = "ACP_AGENT_REMOTE"

// Path returns the path of the program. It is only set in tests run by [Main], and after [Build].
func Path() string {
	note.Do(open)
	return os.Getenv(Variable)
}

// Main implements TestMain for a package that starts the program. In a process with a role it plays
// the role (see [proctest.Play]); otherwise it builds the program, runs the tests, and fails if
// they leak goroutines. play may be nil if there are no roles. What Node compiles is kept for the
// other tests of the package. Unless -parallel says otherwise, more tests run at once than there
// are cores, because they wait for other programs most of the time.
func Main(m goleak.TestingM, play func(role string) int) {
	proctest.Play(play)
	remove, err := Build()
	if err == nil {
		err = flag.Set("test.parallel", strconv.Itoa(2*runtime.NumCPU()))
	}
	if err == nil {
		err = os.Setenv("NODE_COMPILE_CACHE", filepath.Join(filepath.Dir(proctest.Executable()), "node"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		remove()
		os.Exit(code)
	}))
}

// tested is the package of the program.
const tested = "github.com/acp-agent/acp-agent/cmd/acp-agent"

// Build builds the program unless the environment names one. It puts it next to the test binary, so
// that the go command removes both if the tests are killed. The caller removes it at the end.
func Build() (remove func(), err error) {
	if os.Getenv(Variable) != "" {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp(filepath.Dir(proctest.Executable()), "program")
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	path, err := Compile(context.Background(), dir, tested, "-buildvcs=false", "-ldflags=-w")
	if err == nil {
		sources, err = list()
	}
	if err == nil {
		err = os.Setenv(Variable, path)
	}
	if err != nil {
		remove()
	}
	return remove, err
}

// sources are what the program was built from, and note opens them.
var (
	sources []string
	note    sync.Once
)

// list returns the files and directories of the module that the program is built from.
func list() ([]string, error) {
	const ours = "{{if .Module}}{{if .Module.Main}}{{.Dir}}\n{{.Module.GoMod}}\n" +
		"{{range .EmbedFiles}}{{$.Dir}}/{{.}}\n{{end}}{{end}}{{end}}"
	out, err := exec.Command("go", "list", "-deps", "-f", ours, tested).Output()
	if err != nil {
		return nil, fmt.Errorf("listing what %s is built from: %w", tested, err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), nil
}

// open opens the sources in a test. The go command notes what tests open, and so takes no result
// for another program from its cache.
func open() {
	for _, path := range sources {
		if f, err := os.Open(path); err == nil {
			_ = f.Close()
		}
	}
}

// Package program builds acp-agent once for all tests of a package:
//
//	func TestMain(m *testing.M) { program.Main(m, play) }
//
//	p, err := pipes.Start(pipes.Options{Command: []string{program.Path(), "--state-dir", dir}})
//
// It must only be imported by tests.
package program

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/interop/pipes"
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
func Path() string { return os.Getenv(Variable) }

// Main implements TestMain for a package that starts the program. In a process with a role it plays
// the role (see [proctest.Play]); otherwise it builds the program, runs the tests, and fails if
// they leak goroutines. play may be nil if there are no roles. What Node compiles is kept for the
// other tests of the package.
func Main(m goleak.TestingM, play func(role string) int) {
	proctest.Play(play)
	remove, err := Build()
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

// Build builds the program unless the environment names one. It puts it next to the test binary, so
// that the go command removes both if the tests are killed. The caller removes it at the end.
func Build() (remove func(), err error) {
	if Path() != "" {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp(filepath.Dir(proctest.Executable()), "program")
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	path, err := pipes.Build(context.Background(), dir, "github.com/acp-agent/acp-agent/cmd/acp-agent")
	if err == nil {
		err = os.Setenv(Variable, path)
	}
	if err != nil {
		remove()
	}
	return remove, err
}

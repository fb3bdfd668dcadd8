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
	"testing"

	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/interop/pipes"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// Variable is the environment variable with the path of the program under test. If it is set,
// nothing is built, so that another build, such as one with -race, can be tested. It is always set
// while tests run.
const Variable = "ACP_AGENT_BINARY"

// Path returns the path of the program. It is only set in tests run by [Main].
func Path() string { return os.Getenv(Variable) }

// Main implements TestMain for a package that starts the program. In a process with a role it plays
// the role (see [proctest.Play]); otherwise it builds the program, runs the tests, and fails if
// they leak goroutines. play may be nil if there are no roles.
func Main(m *testing.M, play func(role string) int) {
	proctest.Play(play)
	remove, err := build()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		remove()
		os.Exit(code)
	}))
}

// build builds the program unless the environment names one. It puts it next to the test binary, so
// that the go command removes both if the tests are killed.
func build() (remove func(), err error) {
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

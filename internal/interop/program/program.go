// Package program builds acp-agent once for all tests of a package that start it:
//
//	func TestMain(m *testing.M) { program.Main(m, play) }
//
//	p, err := pipes.Start(pipes.Options{Command: []string{program.Path(), "--state-dir", dir}})
//
// Only tests import it.
package program

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/interop/pipes"
	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
)

// Variable is the environment variable that names the program under test. Where it is set nothing is built, so that
// another build can be tested, such as one with -race; in the tests it always is.
const Variable = "ACP_AGENT_BINARY"

// Path is the path of the program, under a [Main].
func Path() string { return os.Getenv(Variable) }

// Main is the TestMain of a package that starts the program. It plays the role that the process was started in, see
// [proctest.Play]; in none it builds the program, runs the tests, and fails if they leave a goroutine behind. play is nil
// where no process is played.
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

// build builds the program, unless the environment names one. It stands beside the test binary, so that where the tests
// are killed the go command removes both.
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

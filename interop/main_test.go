package interop

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/interop/pipes"
	"github.com/acp-agent/acp-agent/interop/scripted"
)

const (
	// binary is the environment variable that names the program under test.
	binary = "ACP_AGENT_BINARY"
	// role is set where the test binary is to play the agent behind the program.
	role = "ACP_AGENT_INTEROP_ROLE"
)

func TestMain(m *testing.M) {
	if os.Getenv(role) == "scripted" {
		if err := scripted.Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	cleanUp, err := build()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		cleanUp()
		os.Exit(code)
	}))
}

// build builds the program, unless the environment names one.
func build() (cleanUp func(), err error) {
	if os.Getenv(binary) != "" {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "acp-agent-interop")
	if err != nil {
		return nil, err
	}
	cleanUp = func() { _ = os.RemoveAll(dir) }
	program, err := pipes.Build(context.Background(), dir, "github.com/acp-agent/acp-agent/cmd/acp-agent")
	if err == nil {
		err = os.Setenv(binary, program)
	}
	if err != nil {
		cleanUp()
	}
	return cleanUp, err
}

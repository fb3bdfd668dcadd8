package agents

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/interop/pipes"
)

// binary is the environment variable that names the program under test.
const binary = "ACP_AGENT_BINARY"

func TestMain(m *testing.M) {
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
	dir, err := os.MkdirTemp("", "acp-agent-agents")
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

package process_test

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
)

func TestMain(m *testing.M) { proctest.Main(m, play) }

func play(r string) int {
	switch r {
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "hold": // ignores the end of its input
		return proctest.HoldOn()
	case "hold on": // and SIGTERM
		signal.Ignore(syscall.SIGTERM)
		return proctest.HoldOn()
	case "close stdout":
		_ = os.Stdout.Close()
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "print":
		fmt.Print(strings.Repeat("x", printed))
	case "print after": // its input has ended
		_, _ = io.Copy(io.Discard, os.Stdin)
		fmt.Print(strings.Repeat("x", 100*printed))
	case "complain":
		fmt.Fprintf(os.Stderr, "first\n\n  second\r\nbad \xff\n%s\nlast",
			strings.Repeat("long", 100))
		return 3
	case "reveal":
		fmt.Fprintln(os.Stderr, `it is "quoted" \ secret`)
		return 3
	case "flood":
		for range 20_000 {
			fmt.Fprintln(os.Stderr, "flood")
		}
		fmt.Print("done")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "not found":
		return 127
	default:
		return playUnix(r)
	}
	return 0
}

// printed is how much "print" prints. It fits into a pipe.
const printed = 50_000

// patience bounds how long a test waits before it fails.
const patience = volume.Patience

// self returns a command that starts this binary in a role.
func self(r string, env ...string) process.Command {
	return process.Command{Path: proctest.Executable(), Name: r, Env: proctest.Env(r, env...)}
}

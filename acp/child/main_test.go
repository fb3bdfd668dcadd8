package child_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/acp/child"
)

// The test binary plays the children: role names which, and address is where one that holds on dials.
const (
	role    = "ACP_CHILD_TEST_ROLE"
	address = "ACP_CHILD_TEST_ADDRESS"
)

func TestMain(m *testing.M) {
	if r := os.Getenv(role); r != "" {
		os.Exit(play(r))
	}
	goleak.VerifyTestMain(m)
}

func play(r string) int {
	switch r {
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "hold": // ignores the end of its input
		return hold()
	case "hold on": // and SIGTERM
		signal.Ignore(syscall.SIGTERM)
		return hold()
	case "close stdout":
		_ = os.Stdout.Close()
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "print":
		fmt.Print(strings.Repeat("x", printed))
	case "print after": // its input has ended
		_, _ = io.Copy(io.Discard, os.Stdin)
		fmt.Print(strings.Repeat("x", 100*printed))
	case "complain":
		fmt.Fprintf(os.Stderr, "first\n\n  second\r\nbad \xff\n%s\nlast", strings.Repeat("long", 100))
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

// printed is how much "print" prints: it fits a pipe, so that nobody need read it.
const printed = 50_000

// patience bounds waits for what must happen.
const patience = 20 * time.Second

// hold says over a connection that it lives, and lives until that ends.
func hold() int {
	c, err := net.Dial("tcp", os.Getenv(address))
	if err != nil {
		return 1
	}
	fmt.Fprintln(c, "here")
	_, _ = io.Copy(io.Discard, c)
	return 0
}

// self is a command that starts this binary in a role.
func self(r string, env ...string) child.Command {
	return child.Command{Path: must(os.Executable()), Name: r, Env: append(env, role+"="+r, "GORACE=atexit_sleep_ms=0")}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Command acp-agent is an ACP agent with multi-root sessions: it serves one editor on
// stdin and stdout, by itself or in front of another ACP agent.
//
//	acp-agent [flags]                         answer from the session's folders
//	acp-agent [flags] -- COMMAND ARGS...      put another agent behind it
//	acp-agent run --cwd D --dir D... PROMPT   try it from a shell
//
// Standard output carries protocol only; what a person should know goes to standard
// error or a log file.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// A client that went away is an error of the write, which ends the program in order. The signal is
	// caught, not ignored: child processes would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), ends()...)
	code := run(ctx, os.Args[1:], standardStreams())
	stop()
	os.Exit(code)
}

// ends are the signals that end the program in order. One that was ignored when it was started, as by nohup, stays so.
func ends() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var ended *statusError
	if errors.As(err, &ended) {
		return ended.status // it has said itself what is wrong
	}
	fmt.Fprintln(s.err, "acp-agent:", err)
	var usage *usageError
	if errors.As(err, &usage) {
		return 2
	}
	return 1
}

// statusError is a program that was run in our place and ended with another status than 0.
type statusError struct {
	name   string
	status int
}

func (e *statusError) Error() string { return fmt.Sprintf("%s ended with status %d", e.name, e.status) }

// Package cli is the command line of acp-agent. A command has a file, cmd_*.go, in which newNAME
// returns it with its flags, and help/NAME.txt says what it and its flags do. It calls the package
// that does the work. The list of commands is in root.go, and that of settings in
// settings_table.go. An editor that starts the program is served in cmd_acp.go, by what
// downstream.go chooses.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"os/user"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// Main runs the command line of this process and returns its exit status.
func Main() int {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	s := streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}
	s.interrupts = listen(stop)
	return run(ctx, os.Args[1:], s)
}

// run runs the command line and returns the exit status.
func run(ctx context.Context, args []string, s streams) int {
	// If the editor goes away, writing fails and the program ends in an orderly way. SIGPIPE is
	// caught rather than ignored because child processes would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	boundGarbage()
	findHome()
	root, set := newRoot(s)
	if i := skipFlags(root, args); i < len(args) && args[i] != "--" {
		addCommands(root, set) // which would delay the answer to an editor
	}
	separated, doubts := separateAgentArgs(root, args)
	root.SetArgs(separated)
	for _, doubt := range doubts {
		name, _, _ := strings.Cut(doubt, "=")
		s.note("passing %s to the agent: acp-agent reads its own flags before those of the agent", name)
	}
	var unprinted error
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { unprinted = printHelp(cmd) })
	cmd, err := root.ExecuteContextC(ctx)
	return report(ctx, s, cmd, cmp.Or(err, unprinted))
}

// report says why a command has failed, if it has, and returns the exit status.
func report(ctx context.Context, s streams, cmd *cobra.Command, err error) int {
	if ended, ok := errors.AsType[*statusError](err); ok {
		return ended.status
	}
	forEditor := !cmd.HasParent() || cmd.Name() == "acp" || cmd.Name() == "connect"
	interrupted := errors.Is(context.Cause(ctx), errInterrupted)
	failed, ok := errors.AsType[*fs.PathError](err)
	unwritten := ok && failed.Path == os.Stdout.Name()
	switch {
	case err == nil && interrupted && !forEditor:
		return statusInterrupted
	case err == nil, unwritten && errors.Is(err, syscall.EPIPE):
		// The reader has closed standard output: because it has read enough, like head, or because
		// it has ended, like an editor that closes it before standard input.
		return 0
	case interrupted, errors.Is(err, context.Canceled):
		s.note("interrupted")
		return statusInterrupted
	}
	if unwritten {
		err = fmt.Errorf("the output is incomplete: %w; write it to another place", failed.Err)
	}
	_, served := errors.AsType[*servingError](err)
	s.note("%s", text.Plain(err.Error()))
	if forEditor && !served && !s.interactive() {
		answerInitialize(ctx, s, err)
	}
	if _, ok := errors.AsType[*usage.Error](err); ok {
		return 2
	}
	return 1
}

// findHome sets HOME from the user database if it is not set: some editors start agents without it.
func findHome() {
	if runtime.GOOS == "windows" || os.Getenv("HOME") != "" {
		return
	}
	if u, err := user.Current(); err == nil && u.HomeDir != "" {
		_ = os.Setenv("HOME", u.HomeDir) // fails only for an invalid name
	}
}

// answerInitialize answers the editor's first request with the error that prevented the program
// from starting, because many editors do not show what an agent writes to stderr.
func answerInitialize(ctx context.Context, s streams, failure error) {
	jsonrpc.Refuse(ctx, jsonrpc.NewLines(s.in, s.out, 0), jsonrpc.Errorf(jsonrpc.CodeInternal,
		"acp-agent cannot start: %s", text.Plain(failure.Error())))
}

// servingError is returned for an error that occurred after the program began to serve the editor.
type servingError struct{ error }

func (e *servingError) Unwrap() error { return e.error }

// statusError ends the program with a status. The reason was already reported, by the child process
// that ended with this status or by the function that returns the error.
type statusError struct{ status int }

func (e *statusError) Error() string { return fmt.Sprintf("ended with status %d", e.status) }

package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/test/terminal"
	"github.com/acp-agent/acp-agent/internal/test/volume"
)

// acting is a command of the scripts. "acting FILE COMMAND ARGS..." runs a command on a new
// terminal and does what the lines of FILE say: "type TEXT" with Go's escapes, "see REGEXP" waits
// until the terminal shows it since the last key, "size COLUMNS LINES", and "signal" sends SIGTERM.
// Before the command starts, "early TEXT" types, and after "pipes" only its standard input is the
// terminal. Everything that the terminal shows is written to the file tty, the exit status is the
// command's.
func acting() {
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "acting:", err)
			os.Exit(99)
		}
	}
	script, err := os.ReadFile(os.Args[1])
	check(err)
	shown, err := act(check, string(script), exec.Command(os.Args[2], os.Args[3:]...))
	check(os.WriteFile("tty", []byte(shown), 0o600))
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	check(err)
	os.Exit(0)
}

// act runs a command on a new terminal, does what the script says, and returns what the terminal
// shows. check gets what else goes wrong, and does not return then.
func act(check func(error), script string, cmd *exec.Cmd) (all string, err error) {
	person, program, err := terminal.Open()
	check(err)
	defer person.Close()
	resize := func(arguments string) {
		var size unix.Winsize
		_, err := fmt.Sscan(arguments, &size.Col, &size.Row)
		check(err)
		check(unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &size))
	}
	resize("80 24")
	before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	check(err)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	pieces := make(chan string)
	go func() {
		defer close(pieces)
		for some := make([]byte, 1<<16); ; {
			n, err := person.Read(some)
			if err != nil {
				return
			}
			pieces <- string(some[:n])
		}
	}()
	var seen string
	timeout := time.After(volume.Patience)
	see := func(pattern *regexp.Regexp) {
		for pattern == nil || !pattern.MatchString(seen) {
			select {
			case piece, open := <-pieces:
				if !open {
					if pattern != nil {
						check(fmt.Errorf("%s is not shown before the end: %q", pattern, seen))
					}
					return
				}
				all, seen = all+piece, seen+piece
			case <-timeout:
				check(fmt.Errorf("%v is not shown: %q", pattern, seen))
			}
		}
	}
	for line := range strings.Lines(script + "begun\n") {
		verb, arguments, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if cmd.Process == nil && !slices.Contains([]string{"early", "pipes", "size"}, verb) {
			check(cmd.Start())
		}
		switch verb {
		case "see":
			see(regexp.MustCompile("(?s)" + arguments))
		case "type", "early":
			keys, err := strconv.Unquote(`"` + arguments + `"`)
			check(err)
			seen = ""
			_, err = person.WriteString(keys)
			check(err)
		case "pipes":
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		case "size":
			resize(arguments)
		case "signal":
			check(cmd.Process.Signal(syscall.SIGTERM))
		}
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for open := true; open; {
		select {
		case err = <-done:
			open = false
		case piece := <-pieces:
			all += piece
		case <-timeout:
			_ = cmd.Process.Kill()
			check(fmt.Errorf("it does not end: %q", all))
		}
	}
	after, failed := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	check(failed)
	if *after != *before {
		check(errors.New("the terminal is not as it was"))
	}
	check(program.Close())
	see(nil)
	return all, err
}

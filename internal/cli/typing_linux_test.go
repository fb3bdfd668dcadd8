package cli

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/test/terminal"
)

// typing is a command of the scripts. "typing FILE COMMAND ARGS..." runs a command whose standard
// input is a new terminal, and types one line of FILE after each question that appears there, but
// lines that begin with "early " before the first. "typing -early FILE COMMAND ARGS..." types all
// of FILE before, and Ctrl-D at its end. What the terminal shows is written to the file tty, up to
// the last byte, which ttyout of testscript loses if it is slow. The command's exit status is that
// of typing.
func typing() {
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	args := os.Args[1:]
	early := args[0] == "-early"
	if early {
		args = args[1:]
	}
	text, err := os.ReadFile(args[0])
	check(err)
	lines := strings.SplitAfter(string(text), "\n")
	person, program, err := terminal.Open()
	check(err)
	if early {
		_, err := person.WriteString(string(text) + "\x04")
		check(err)
		lines = []string{""}
	}
	for ; strings.HasPrefix(lines[0], "early "); lines = lines[1:] {
		_, err := person.WriteString(strings.TrimPrefix(lines[0], "early "))
		check(err)
	}
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	check(cmd.Start())
	check(program.Close())
	var shown []byte
	question := regexp.MustCompile(`\[n\] [^:]*: $`)
	for answered := 0; ; {
		some := make([]byte, 4096)
		n, err := person.Read(some)
		shown = append(shown, some[:n]...)
		if err != nil { // the command has ended
			break
		}
		if question.Match(shown) && len(shown) > answered && len(lines) > 0 {
			answered = len(shown)
			_, err := person.WriteString(lines[0])
			check(err)
			lines = lines[1:]
		}
	}
	err = cmd.Wait()
	check(os.WriteFile("tty", shown, 0o600))
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	check(err)
	os.Exit(0)
}

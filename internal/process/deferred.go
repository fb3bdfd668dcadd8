package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/text"
)

// An editor runs commands for agents and models in its own terminals. To run such a command in the
// sandbox it starts our program in place of it, which restricts itself and then becomes the
// command. Everything that the agent chose is in one environment variable: names in the
// environment could change how our program starts, and some editors give arguments to a shell
// without quotes.

// deferredVariable holds a command that [RunDeferred] runs, as JSON.
const deferredVariable = "ACP_AGENT_DEFERRED"

// helperValue is its content for a helper; see runHelper.
const helperValue = "helper"

// deferred is the content of that variable.
type deferred struct {
	Policy sandbox.Policy
	Path   string   // of the program, or a command line for a shell
	Args   []string `json:",omitempty"` // without the program's name
	Env    []string `json:",omitempty"` // added to that of our process
}

// Defer returns the command that an editor can start in place of c, to run c in its sandbox. self
// is the command line of our program that calls [RunDeferred]. In addition to what [Command] says,
// Path may be a command line for a shell, as it may in the editor. Defer fails if the sandbox lets
// programs replace ours.
func (c Command) Defer(self []string) (Command, error) {
	program, err := ownProgram(self[0], c.Sandbox)
	if err != nil {
		return Command{}, err
	}
	text, err := json.Marshal(deferred{Policy: c.Sandbox, Path: c.Path, Args: c.Args, Env: c.Env})
	if err != nil {
		return Command{}, err
	}
	return Command{Path: program, Args: append(slices.Clone(self[1:]), "--", c.shown()),
		Env: []string{deferredVariable + "=" + string(text)}}, nil
}

// ownProgram returns the path of our program without links. It fails if a process that is
// restricted by p could replace it.
func ownProgram(path string, p sandbox.Policy) (string, error) {
	program, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("cannot find acp-agent's own program: %w", err)
	}
	if p.Writes(program) {
		return "", fmt.Errorf("acp-agent's own program, %s, lies where the sandbox lets programs "+
			"write: install it elsewhere", program)
	}
	return program, nil
}

// shown returns the command line for a person, without characters that a shell could obey.
func (c Command) shown() string {
	const most = 200
	line := text.Line(strings.Join(append([]string{c.Path}, c.Args...), " "), most)
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" _./:+,-", r) {
			return r
		}
		return '·'
	}, line)
}

// RunDeferred replaces our process by the command that [Command.Defer] left in the environment, in
// its sandbox. It returns only with an error, or if the command has a list of hosts, when it has
// ended: then our process is its proxy. With an environment by start it becomes a helper, which is
// how an ordinary user gets a network namespace.
func RunDeferred() error {
	if os.Getenv(deferredVariable) == helperValue {
		return runHelper()
	}
	var d deferred
	switch err := json.Unmarshal([]byte(os.Getenv(deferredVariable)), &d); {
	case os.Getenv(deferredVariable) == "":
		return errors.New("the editor did not pass on " + deferredVariable +
			", the environment variable with the command")
	case err != nil:
		return fmt.Errorf("%s: %w", deferredVariable, err)
	case d.Policy.Mode == sandbox.Off:
		return errors.New(deferredVariable + " has no restriction")
	}
	env := append(EnvironmentWithout([]string{deferredVariable}), d.Env...)
	env = (&exec.Cmd{Env: env}).Environ() // the last value of a name wins
	run := func(program string, argv []string) error {
		launch := sandbox.Launch{Path: program, Args: argv}
		err := d.Policy.Run(launch, func(l sandbox.Launch) error {
			return syscall.Exec(l.Path, l.Args, env)
		})
		return fmt.Errorf("cannot start %q: %w", d.Path, err)
	}
	if d.Policy.Hosts.Limited {
		run = func(program string, argv []string) error {
			c := Command{Path: program, Args: argv[1:], Base: env, Sandbox: d.Policy,
				calledAs: argv[0]}
			return RunInTerminal(context.Background(), c, os.Stdin, os.Stdout, os.Stderr)
		}
	}
	program, argv := d.argv(env)
	err := run(program, argv)
	if errors.Is(err, syscall.ENOEXEC) { // a script without an interpreter, as for execvp
		err = run("/bin/sh", append([]string{"sh", program}, argv[1:]...))
	}
	return err
}

// argv returns the program to start with env, and its name and arguments. If the program is
// missing, a shell takes d.Path as a command line or says what is wrong with it, because some
// editors start every command with a shell.
func (d deferred) argv(env []string) (program string, argv []string) {
	_ = os.Setenv("PATH", lookUp(env, "PATH")) // of the command, which is looked up there
	if program, err := exec.LookPath(d.Path); err == nil {
		return program, append([]string{d.Path}, d.Args...)
	}
	line := d.Path
	if len(d.Args) > 0 {
		line += ` "$@"`
	}
	shell, err := exec.LookPath("/bin/bash")
	if err != nil {
		shell = "/bin/sh"
	}
	return shell, append([]string{shell, "-c", line, filepath.Base(shell)}, d.Args...)
}

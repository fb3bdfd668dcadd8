package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
)

// Command is a program to start.
type Command struct {
	// Path is the program. A name without a separator is looked up in our own PATH, not in that of
	// Env. A relative path is relative to Dir.
	Path string
	// Args are the arguments after the program's name.
	Args []string
	// Env is added to Base as NAME=VALUE. The last value of a name wins.
	Env []string
	// Base is our environment if it is nil.
	Base []string
	// Dir is the working directory, "" for ours. A directory of a session must have been checked
	// with workspace.HandOverDir.
	Dir string
	// Name is the child's name in the log and in errors. Default: the base name of Path.
	Name string
	// Sandbox restricts the child and what it starts; see package confine.
	Sandbox sandbox.Policy
	// Batch starts the child of [Start] without input. Its stderr goes to its stdout.
	Batch bool

	// calledAs is the program's name for itself, Path if it is "".
	calledAs string
	// keepsDaemons lets processes live on that leave the child's group, such as an agent for keys.
	keepsDaemons bool
}

// base returns the environment to which Env is added.
func (c Command) base() []string {
	if c.Base == nil {
		return os.Environ()
	}
	return c.Base
}

func (c Command) name() string { return cmp.Or(c.Name, filepath.Base(c.Path)) }

// Expand returns a path that begins with "~/" or with "$NAME/" as the child would see it, or "" if
// the variable is not set to an absolute path. It returns other paths as they are.
func (c Command) Expand(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = "$HOME/" + rest
	}
	name, rest, _ := strings.Cut(path, "/")
	name, isVariable := strings.CutPrefix(name, "$")
	if !isVariable {
		return path
	}
	value := c.Getenv(name)
	if !filepath.IsAbs(value) {
		return ""
	}
	return filepath.Join(value, rest)
}

// Getenv returns a variable of the child's environment, "" if it is not set.
func (c Command) Getenv(name string) string { return lookUp(slices.Concat(c.base(), c.Env), name) }

// lookUp returns the value of a variable in an environment.
func lookUp(env []string, name string) (value string) {
	for _, entry := range env {
		if set, ok := strings.CutPrefix(entry, name+"="); ok {
			value = set
		}
	}
	return value
}

// stdio holds the streams and settings with which a child is started, in addition to its [Command].
type stdio struct {
	in       io.Reader
	out, err io.Writer
	env      []string // added to its environment
	// refused is called for each host that the sandbox does not allow, once. It may be nil.
	refused func(hosts.Refusal)
}

// start starts c with the given streams and attributes. Every child process of the program starts
// here, so rules for all of them, such as the sandbox, belong here. A test in
// internal/test/conformance keeps other packages from starting processes. When ctx ends, the child
// is sent an interrupt. The caller must close the network when the child has ended. The error is a
// [*StartError].
func start(
	ctx context.Context, c Command, s stdio, attributes *syscall.SysProcAttr,
) (*exec.Cmd, *network, error) {
	if c.Path == "" {
		return nil, nil, &StartError{Command: c, Err: errors.New("no command given")}
	}
	if c.Dir != "" {
		if _, err := os.Stat(c.Dir); err != nil {
			return nil, nil, &StartError{c, "its working directory cannot be used", err}
		}
	}
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	if cmd.Err != nil {
		return nil, nil, &StartError{c, c.notFoundHint(), cmd.Err}
	}
	cmd.Args[0] = cmp.Or(c.calledAs, cmd.Args[0])
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	// It is not nil, even if it is empty: that would stand for our environment.
	cmd.Env = append([]string{}, slices.Concat(c.base(), c.Env, s.env)...)
	cmd.Dir = c.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.in, s.out, s.err
	cmd.SysProcAttr = attributes
	n, err := openNetwork(c.Sandbox, cmd.Env, s.refused)
	if err == nil {
		cmd.Env = append(cmd.Env, n.env...)
		err = n.launch(cmd, c.Sandbox)
	}
	if err != nil {
		n.close()
		return nil, nil, c.CannotStart(err)
	}
	return cmd, n, nil
}

// Find returns a [*StartError] if such a program does not exist.
func (c Command) Find() error {
	if _, err := exec.LookPath(c.Path); err != nil {
		return &StartError{c, c.notFoundHint(), err}
	}
	return nil
}

// EnvironmentWithout returns our environment without the variables of these names, for
// [Command].Base.
func EnvironmentWithout(names []string) []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.ContainsFunc(names, func(withheld string) bool {
			return name == withheld ||
				runtime.GOOS == "windows" && strings.EqualFold(name, withheld)
		})
	})
}

func (c Command) notFoundHint() string {
	program, _, several := strings.Cut(c.Path, " ")
	if _, err := exec.LookPath(program); several && err == nil {
		return "give its arguments as words of their own, without quotes around all"
	}
	if strings.ContainsRune(c.Path, filepath.Separator) {
		return "check that the path exists and is that of a program"
	}
	return "if it is installed, use its absolute path"
}

// CannotStart returns the error that c, whose program was found, could not be started.
func (c Command) CannotStart(err error) *StartError { return &StartError{c, c.startHint(err), err} }

// startHint explains an error of the operating system for a program that was found.
func (c Command) startHint(err error) string {
	path := c.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	switch {
	case errors.Is(err, sandbox.ErrUnavailable):
		return `agents and MCP servers with "sandboxFallback": "warn" start without it`
	case errors.Is(err, sandbox.ErrSetup):
		return "another sandbox or container around acp-agent may refuse this"
	case errors.Is(err, fs.ErrPermission) && namedfile.IsDir(path):
		return "it is a folder: give the path of a program"
	case errors.Is(err, syscall.ENOEXEC):
		return "it is neither a program for this system nor a script that begins with #!"
	case errors.Is(err, fs.ErrPermission) && c.Sandbox.Mode == sandbox.Strict:
		return "the file is not executable, or the sandbox does not let the command read it"
	case errors.Is(err, fs.ErrPermission):
		return "the file is not executable"
	case !errors.Is(err, fs.ErrNotExist):
		return ""
	}
	if _, statErr := os.Stat(path); statErr == nil {
		return "the file exists, but the interpreter named in its first line does not"
	}
	return c.notFoundHint()
}

// StartError is returned for a command that could not be started. Its text says what to do.
type StartError struct {
	Command Command
	// Hint says what to check, or is "".
	Hint string
	// Err is the cause; exec.ErrNotFound if the program was not found in PATH.
	Err error
}

func (e *StartError) Error() string {
	cause := e.Err // without the path, which the text has
	if search, ok := errors.AsType[*exec.Error](e.Err); ok {
		cause = search.Err
	} else if path, ok := errors.AsType[*fs.PathError](e.Err); ok && path.Path == e.Command.Path {
		cause = path.Err
	}
	text := fmt.Sprintf("cannot start %q: %v", e.Command.Path, cause)
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

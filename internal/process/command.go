package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Command says what to start.
type Command struct {
	// Path is the program. A name without a separator is searched for in our own PATH, not
	// in that of Env. A relative path with one is taken from Dir.
	Path string
	// Args are the arguments after the program's name.
	Args []string
	// Env is added to our environment as NAME=VALUE; of two entries for a name the later wins.
	Env []string
	// Dir is the working directory, "" for ours.
	Dir string
	// Name is the child's name in the log and in errors. Default: the base name of Path.
	Name string
}

func (c Command) name() string {
	return cmp.Or(c.Name, filepath.Base(c.Path))
}

// prepare returns what starts c, or a *StartError.
func (c Command) prepare() (*exec.Cmd, error) {
	if c.Path == "" {
		return nil, &StartError{Command: c, Err: errors.New("no command given")}
	}
	if c.Dir != "" {
		if _, err := os.Stat(c.Dir); err != nil {
			return nil, &StartError{Command: c, Hint: "its working directory cannot be used", Err: err}
		}
	}
	cmd := exec.Command(c.Path, c.Args...)
	if cmd.Err != nil {
		return nil, &StartError{Command: c, Hint: c.notFoundHint(), Err: cmd.Err}
	}
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Dir = c.Dir
	return cmd, nil
}

func (c Command) notFoundHint() string {
	if strings.ContainsRune(c.Path, filepath.Separator) {
		return "check the path, and that the file may be executed"
	}
	return fmt.Sprintf("searched in PATH, which is %q; editors started from a desktop often have a short PATH: give the command's absolute path",
		os.Getenv("PATH"))
}

// startHint explains an error of the operating system for a program that was found.
func (c Command) startHint(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "the file may not be executed"
	case !errors.Is(err, fs.ErrNotExist):
		return ""
	}
	path := c.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	if _, statErr := os.Stat(path); statErr == nil {
		return "the file exists; the interpreter that its first line names does not"
	}
	return c.notFoundHint()
}

// StartError: a command that could not be started. Its text tells a person what to do.
type StartError struct {
	Command Command
	// Hint says what to look at, "" if there is nothing to say.
	Hint string
	// Err is the cause; exec.ErrNotFound if the program was not found in PATH.
	Err error
}

func (e *StartError) Error() string {
	text := fmt.Sprintf("cannot start %q: %v", e.Command.Path, e.Err)
	var search *exec.Error
	if errors.As(e.Err, &search) {
		text = fmt.Sprintf("cannot start %q: %v", e.Command.Path, search.Err)
	}
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

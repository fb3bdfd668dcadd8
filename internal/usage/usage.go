// Package usage has the error for an invalid command line or configuration, with which the program
// exits with status 2.
package usage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// Error reports an invalid command line or configuration.
type Error struct{ message string }

func (e *Error) Error() string { return e.message }

// Errorf returns an [*Error].
func Errorf(format string, args ...any) error {
	return &Error{message: fmt.Sprintf(format, args...)}
}

// DescribeRootError explains what is wrong with a folder. It names the flag or setting of the
// folder: cwd for root 0 and dir for others.
func DescribeRootError(e workspace.RootError, cwd, dir string) string {
	switch {
	case e.Root < 0:
		return fmt.Sprintf("%s: too many folders: the limit is %s", dir, e.Detail)
	case e.Root == 0:
		dir = cwd
	}
	problem := e.Problem()
	switch {
	case e.Reason == workspace.ReasonUnreadable:
		problem = "cannot be opened: " + permitted(e.Detail)
	case e.Reason == workspace.ReasonMissing && strings.Contains(dir, " in "):
		return missing(e.Path, dir)
	case e.Reason == workspace.ReasonDenied && e.Detail == "":
		problem = "is not in a folder of --within"
	case e.Reason == workspace.ReasonDenied:
		problem = "is refused, because acp-agent keeps its own files in " + e.Detail
	}
	return fmt.Sprintf("%s %q %s", dir, e.Path, problem)
}

// permitted returns why a folder cannot be opened, and what to do about permissions.
func permitted(why string) string {
	if why == "permission denied" {
		return "you have no permission: chmod u+rx gives it to the owner"
	}
	return why + "; give another folder"
}

// missing explains that a folder of the configuration, in a setting, does not exist.
func missing(path, setting string) string {
	return fmt.Sprintf("the folder %q (%s) does not exist: create it, or remove it there",
		path, setting)
}

// WithFlagNames returns err with the names of flags instead of roots or fields of a request.
func WithFlagNames(err error, cwd, dir string) error {
	if roots, ok := errors.AsType[workspace.RootErrors](err); ok {
		first := DescribeRootError(roots[0], "--"+cwd, "--"+dir)
		if more := len(roots) - 1; more > 0 {
			return fmt.Errorf("%s (and %d more)", first, more)
		}
		return errors.New(first)
	}
	found := slices.Clone(strictjson.ViolationsOf(err))
	if found == nil {
		return err
	}
	for i, v := range found {
		switch v.Field {
		case "cwd":
			found[i].Field = "--" + cwd
		case "additionalDirectories":
			found[i].Field, found[i].Index = "--"+dir, nil
		}
		if v.Reason == strictjson.Missing && strings.Contains(v.Field, " in ") {
			return errors.New(missing(strings.Trim(string(v.Value), `"`), v.Field))
		}
		if v.Reason == strictjson.Unreadable {
			found[i].Expected = permitted(v.Expected)
		}
		if v.Reason == strictjson.TooMany {
			return fmt.Errorf("too many folders: the limit is %s", v.Expected)
		}
	}
	return strictjson.Refuse(found...)
}

// Absolute parses paths given on the command line.
func Absolute(paths ...string) (workspace.Dirs, error) {
	full, err := AbsolutePaths(paths...)
	if err != nil {
		return workspace.Dirs{}, err
	}
	return workspace.ParseDirs(full)
}

// AbsolutePaths makes paths given on the command line Absolute. It does not resolve "..", because
// after a symbolic link that can lead to a different directory than the text suggests.
func AbsolutePaths(paths ...string) ([]string, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, errors.New("the current folder does not exist any more: change to another one")
	}
	full := make([]string, len(paths))
	for i, path := range paths {
		switch {
		case path == "":
			return nil, Errorf("the path of a folder is empty: use . for the current one")
		case strings.Contains(path, ",") && isMissing(path):
			return nil, Errorf("there is no folder %q: give each folder with a flag of its own",
				path)
		case filepath.IsAbs(path):
			full[i] = path
		case filepath.VolumeName(path) != "" || runtime.GOOS == "windows":
			if full[i], err = filepath.Abs(path); err != nil {
				return nil, err
			}
		default:
			full[i] = here + string(filepath.Separator) + path
		}
	}
	return full, nil
}

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

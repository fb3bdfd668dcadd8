package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/sandbox"
)

// Restrict returns c restricted as s says, for sessions with these roots, as real paths. It creates
// the directories of s.State: some programs hang without them. The error is a [*StartError].
func (c Command) Restrict(s sandbox.Settings, roots []string) (Command, error) {
	if s.Mode == sandbox.Off || s.Unprotected() != nil {
		return c, nil
	}
	restricted, err := c.restrict(s, roots)
	if err == nil {
		return restricted, nil
	}
	if unavailable := s.Available(); unavailable != nil { // otherwise starting the command fails
		err = &StartError{c, c.startHint(unavailable), unavailable}
	}
	return c, err
}

func (c Command) restrict(s sandbox.Settings, roots []string) (Command, error) {
	p := sandbox.Policy{Mode: s.Mode, Write: slices.Clone(roots), Ports: s.Ports}
	if err := allow(&p, cmp.Or(c.Expand("$TMPDIR"), "/tmp")); err != nil {
		return c, &StartError{c, "its sandbox needs its temporary directory", err}
	}
	for _, name := range s.State {
		if err := c.allowState(&p, name); err != nil {
			return c, &StartError{c, "its sandbox needs the directories for its state", err}
		}
	}
	for _, name := range s.Write {
		err := errNotAbsolute
		if path := c.Expand(name); filepath.IsAbs(path) {
			err = allow(&p, path)
		}
		if err != nil {
			return c, &StartError{c, "correct sandboxWrite", fmt.Errorf("%s: %w", name, err)}
		}
	}
	if s.Mode == sandbox.Strict {
		for _, name := range s.Read {
			p.Read = append(p.Read, c.Expand(name))
		}
		p.Read = append(p.Read, installation(c)...)
		p.Read = slices.DeleteFunc(p.Read,
			func(path string) bool { return !filepath.IsAbs(path) })
	}
	c.Sandbox = p
	return c, nil
}

var errNotAbsolute = errors.New("not an absolute path, or the variable is not set to one")

// allow lets p write to a path. A path in a directory that is already listed is not added, and not
// followed: a command may have put a link there.
func allow(p *sandbox.Policy, path string) error {
	path = filepath.Clean(path)
	if slices.ContainsFunc(p.Write, func(dir string) bool { return isIn(dir, path) }) {
		return nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		p.Write = append(p.Write, real)
	}
	return err
}

// isIn reports whether path is dir or below it.
func isIn(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// allowState lets p write to an entry of [sandbox.Settings].State, and creates a directory. A
// directory that cannot be created here cannot be used by c either.
func (c Command) allowState(p *sandbox.Policy, name string) error {
	path := c.Expand(name)
	if path == "" {
		return nil
	}
	if strings.HasSuffix(name, "/") {
		err := os.MkdirAll(path, 0o700)
		if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
			return err
		}
	}
	if err := allow(p, path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

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
	value := ""
	for _, entry := range slices.Concat(c.base(), c.Env) {
		if set, ok := strings.CutPrefix(entry, name+"="); ok {
			value = set
		}
	}
	if !filepath.IsAbs(value) {
		return ""
	}
	return filepath.Join(value, rest)
}

// installation returns the files of its own that a program must be able to read, and the
// directories in which it looks for other programs. "" stands for an unknown path.
func installation(c Command) []string {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	if found, err := exec.LookPath(c.Path); err == nil {
		dirs = append(dirs, filepath.Dir(found))
		if real, err := filepath.EvalSymlinks(found); err == nil {
			dirs = append(dirs, filepath.Dir(real))
			if before, _, ok := strings.Cut(real, "/node_modules/"); ok {
				dirs = append(dirs, before+"/node_modules")
			}
		}
	}
	return dirs
}

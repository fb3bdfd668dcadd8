// Package confine decides what a command in the sandbox may do: [Command] makes the sandbox.Policy
// of a command from a user's settings, the roots of a session, and what is installed.
//
// Where a restricted process may write, it can put a link in the place of anything. If a later
// process were granted a path that leads through this link, the first one would have chosen what
// the second one may do. So we remember every directory that a restricted process could ever write,
// and follow no link in it, unless the link leads where it led before, or the user accepts it. A
// path that was resolved has no links, and package sandbox grants it only as long as that is so.
//
// The same holds for files that name others: the file .git of a linked worktree, git's settings,
// and scripts with an interpreter. Who could have written them decides what they may name.
package confine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/internal/files/links"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/workspace"
)

// Command returns c restricted as s says, for sessions with these roots. It creates the directories
// of s.State: some programs hang without them. The error is a [*process.StartError].
func Command(
	c process.Command, s sandbox.Settings, roots []workspace.Root,
) (process.Command, error) {
	switch {
	case s.Mode == sandbox.Off && s.Hosts.Limited:
		err := errors.New(`sandboxHosts needs "sandbox": "write" or "strict"`)
		return c, &process.StartError{Command: c, Err: err}
	case s.Mode == sandbox.Off || s.Unprotected() != nil:
		return c, nil
	}
	g := newGrants(s.Records, sandbox.Policy{Mode: s.Mode, Ports: s.Ports, Hosts: s.Hosts,
		Helper: s.Helper, Own: s.Own})
	hint, err := g.grantAll(c, s, roots)
	if err == nil && s.Mode == sandbox.Strict {
		g.grantInstallations(c)
		c = g.grantGit(c)
	}
	if err == nil {
		err = g.remember()
	}
	if err != nil {
		if unavailable := s.Available(); unavailable != nil { // otherwise starting c fails
			return c, c.CannotStart(unavailable)
		}
		return c, &process.StartError{Command: c, Hint: hint, Err: err}
	}
	g.hide(s.Hidden, c.Path)
	c.Sandbox = g.policy
	return c, nil
}

// grantAll grants the roots, and what the settings name. With an error it returns what to do about
// it.
func (g *grants) grantAll(
	c process.Command, s sandbox.Settings, roots []workspace.Root,
) (hint string, err error) {
	if err := g.grantRoots(roots); err != nil {
		return "its sandbox needs the session's folders", err
	}
	if err := g.grantWorktrees(roots); err != nil {
		return "", err
	}
	if err := g.followToWrite(cmp.Or(c.Expand("$TMPDIR"), "/tmp")); err != nil {
		return "its sandbox needs its temporary directory", err
	}
	for _, name := range s.State {
		if err := g.grantState(c.Expand(name), strings.HasSuffix(name, "/")); err != nil {
			return "its sandbox needs the directories for its state", err
		}
	}
	for _, name := range s.Write {
		err := errNotAbsolute
		if path := c.Expand(name); filepath.IsAbs(path) {
			err = g.followToWrite(path)
		}
		if err != nil {
			return "correct sandboxWrite", fmt.Errorf("%s: %w", name, err)
		}
	}
	if s.Mode == sandbox.Strict {
		for _, name := range s.Read {
			if err := g.followToRead(c.Expand(name)); err != nil {
				return "correct sandboxRead", err
			}
		}
	}
	return "", nil
}

// InReadableDir returns c with a working directory that its sandbox lets it read. Programs of Bun
// do not start in another one.
func InReadableDir(c process.Command) process.Command {
	dir, err := filepath.Abs(c.Dir)
	at, failed := links.Follow(dir)
	if len(c.Sandbox.Write) > 0 &&
		(errors.Join(err, failed) != nil || !c.Sandbox.Reads(at.Path())) {
		c.Dir = c.Sandbox.Write[0]
	}
	return c
}

var errNotAbsolute = errors.New("not an absolute path, or the variable is not set to one")

// grantState lets the process write to the path of an entry of [sandbox.Settings].State, and
// creates it if it is a directory.
func (g *grants) grantState(path string, isDir bool) error {
	if path == "" {
		return nil
	}
	if isDir {
		if err := g.makeDir(path); err != nil {
			return err
		}
	}
	if err := g.followToWrite(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

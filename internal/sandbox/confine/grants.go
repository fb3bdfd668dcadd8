package confine

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
	"github.com/acp-agent/acp-agent/internal/files/links"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/workspace"
)

// grants collects the paths that a restricted process is granted, as a policy.
type grants struct {
	policy   sandbox.Policy
	consents *consent.Store // to follow links
	writable *consent.Store // the directories that restricted processes could write
}

// newGrants returns the grants of a process that is granted nothing yet.
func newGrants(records string, p sandbox.Policy) *grants {
	g := &grants{p, consent.NewStore(records), consent.NewStore("")}
	if records != "" {
		g.writable = consent.NewStore(filepath.Join(records, "writable"))
	}
	return g
}

// AcceptLinks remembers that links on the way from path to where it leads now may be followed when
// a process in the sandbox is granted path, and that a linked worktree of git belongs to its
// repository. It returns all that it remembers.
func AcceptLinks(records, path string) ([]consent.Consent, error) {
	at, err := links.Follow(filepath.Clean(path))
	if err == nil && len(at.Missing) > 0 {
		err = &fs.PathError{Op: "open", Path: at.Path(), Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	var accepted []consent.Consent
	if len(at.Links) > 0 {
		accepted = append(accepted, consent.ForLink(filepath.Clean(path), at.Real))
	}
	if own, ok := LinkedWorktree(at.Real); ok {
		accepted = append(accepted, forWorktree(at.Real, own))
	}
	if accepted == nil {
		return nil, fmt.Errorf("%s leads through no link, so there is nothing to follow: name a "+
			"link, or a path behind one", path)
	}
	for _, c := range accepted {
		err = errors.Join(err, consent.NewStore(records).Allow(c))
	}
	return accepted, err
}

// plantedError is returned for a path that leads through a link in a directory that a restricted
// process could write.
type plantedError struct{ path, link, real string }

func (e *plantedError) Error() string {
	return fmt.Sprintf("%s leads to %s through the link %s, which a program in the sandbox could "+
		"have put there: name that directory itself, or, if you made the link, run acp-agent "+
		"permissions follow %[1]s", e.path, e.real, e.link)
}

// errInside is returned for a path that leads through a link in a directory which the process is
// granted itself.
var errInside = errors.New("the path leads through a link in a folder of the session")

// resolve returns where path leads. It fails with a [*plantedError] or errInside.
func (g *grants) resolve(path string) (links.Way, error) {
	at, err := links.Follow(path)
	if err != nil || len(at.Links) == 0 {
		return at, err
	}
	accepted, err := has(g.consents, consent.ForLink(path, at.Real).ID)
	if accepted || err != nil {
		return at, err
	}
	for _, link := range at.Links {
		if g.policy.Writes(link.At) {
			return at, errInside
		}
		planted, err := g.couldWrite(filepath.Dir(link.At))
		if err != nil {
			return at, err
		}
		if planted {
			return at, &plantedError{path, link.At, at.Real}
		}
	}
	return at, nil
}

// follow is resolve, and remembers where path leads if links lead there. So they work even if a
// process may write in their directories later.
func (g *grants) follow(path string) (links.Way, error) {
	at, err := g.resolve(path)
	if err != nil || len(at.Links) == 0 || len(at.Missing) > 0 {
		return at, err
	}
	return at, accept(g.consents, consent.ForLink(path, at.Real))
}

// has is [consent.Store.Has]. Without access to the directory, as in another sandbox, nothing is
// remembered there.
func has(s *consent.Store, id consent.ID) (bool, error) {
	found, err := s.Has(id)
	if isDenied(err) {
		return false, nil
	}
	return found, err
}

// accept allows a consent that is not known yet. It ignores the errors that has ignores.
func accept(s *consent.Store, c consent.Consent) error {
	known, err := has(s, c.ID)
	if err == nil && !known {
		err = s.Allow(c)
	}
	if isDenied(err) {
		return nil
	}
	return err
}

func isDenied(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// couldWrite reports whether a restricted process could ever write in dir, a path without links.
func (g *grants) couldWrite(dir string) (bool, error) {
	for ; ; dir = filepath.Dir(dir) {
		if dir == sharedMemory {
			return true, nil
		}
		for _, id := range placeIDs(dir) {
			if found, err := has(g.writable, id); found || err != nil {
				return found, err
			}
		}
		if dir == filepath.Dir(dir) {
			return false, nil
		}
	}
}

// sharedMemory is a directory that every restricted process may write.
const sharedMemory = "/dev/shm"

// placeIDs returns the IDs by which a directory is remembered: by its path, and by its identity,
// which it keeps if it is renamed or mounted elsewhere.
func placeIDs(dir string) []consent.ID {
	ids := []consent.ID{consent.NewID([]string{"writable", dir})}
	if id := identity(dir); id != "" {
		ids = append(ids, consent.NewID([]string{"writable directory", id}))
	}
	return ids
}

// grantRoots grants the roots of a session.
func (g *grants) grantRoots(roots []workspace.Root) error {
	for _, root := range roots {
		at, err := g.follow(filepath.Clean(root.Dir.String()))
		var there, opened fs.FileInfo
		if err == nil {
			there, err = os.Lstat(at.Path())
		}
		if err == nil {
			opened, err = os.Lstat(root.Real.String())
		}
		if err == nil && !os.SameFile(there, opened) {
			err = fmt.Errorf("%s leads to %s now, and led to %s when the session was opened: load "+
				"it again", root.Dir, at.Real, root.Real)
		}
		if err != nil {
			return err
		}
	}
	for _, root := range roots {
		if root.Grant == workspace.ReadOnly {
			g.policy.Keep = append(g.policy.Keep, root.Real.String())
		} else {
			g.grantWriting(root.Real.String())
		}
	}
	return nil
}

// grantWriting grants writing to a path without links.
func (g *grants) grantWriting(real string) {
	if !slices.Contains(g.policy.Write, real) {
		g.policy.Write = append(g.policy.Write, real)
	}
}

// followToWrite lets the process write to a path. A path in a directory that is granted already is
// not followed.
func (g *grants) followToWrite(path string) error {
	path = filepath.Clean(path)
	if g.policy.Writes(path) {
		return nil
	}
	at, err := g.follow(path)
	switch {
	case errors.Is(err, errInside):
		return nil
	case err == nil && len(at.Missing) > 0:
		return &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	case err == nil && !g.policy.Writes(at.Real):
		g.grantWriting(at.Real)
	}
	return err
}

// makeDir creates a directory with its parents, unless it exists or leads through a link that must
// not be followed. A directory that cannot be created here cannot be used by the process either.
func (g *grants) makeDir(path string) error {
	path = filepath.Clean(path)
	at, err := g.resolve(path)
	if err == nil && len(at.Missing) > 0 {
		err = makeMissing(at)
	}
	if errors.Is(err, errInside) || isDenied(err) {
		return nil
	}
	return err
}

// makeMissing creates the missing directories in the existing one, by handle.
func makeMissing(at links.Way) error {
	dir, err := dirfd.Open(at.Real)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if real, err := dir.RealPath(at.Real); err != nil || real != at.Real {
		return errors.Join(err, fmt.Errorf("%s: %w", at.Real, dirfd.ErrChanged))
	}
	for _, name := range at.Missing {
		if err := dir.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		next, err := dir.OpenDir(name)
		if err != nil {
			return err
		}
		_ = dir.Close()
		dir = next
	}
	return nil
}

// followToRead lets the process read a path, unless that is not absolute, cannot be found, or leads
// through a link in a directory that the process may write. The error is a [*plantedError].
func (g *grants) followToRead(path string) error {
	at, err := g.follow(filepath.Clean(path))
	if planted, ok := errors.AsType[*plantedError](err); ok {
		return planted
	}
	if err == nil {
		g.policy.Read = append(g.policy.Read, at.Path())
	}
	return nil
}

// interpreter returns the path of the program that runs a script, or "". A script that a restricted
// process could write does not choose one.
func (g *grants) interpreter(script string) string {
	planted, err := g.couldWrite(filepath.Dir(script))
	interpreter, failed := exec.LookPath(Interpreter(script))
	if errors.Join(err, failed) != nil || planted || g.policy.Writes(script) ||
		!filepath.IsAbs(interpreter) {
		return ""
	}
	return interpreter
}

// hide hides directories that exist from the process, which is to run a program. One that contains
// the program, or something that is granted, is not hidden.
func (g *grants) hide(dirs []string, program string) {
	if found, err := exec.LookPath(program); err == nil {
		if at, err := links.Follow(found); err == nil && filepath.IsAbs(found) {
			program = at.Path()
		}
	}
	needed := slices.Concat(g.policy.Write, g.policy.Read, []string{program})
	for _, dir := range dirs {
		at, err := links.Follow(filepath.Clean(dir))
		if err == nil && len(at.Missing) == 0 && !slices.ContainsFunc(needed,
			func(path string) bool { return sandbox.Contains(at.Real, path) }) {
			g.policy.Hidden = append(g.policy.Hidden, at.Real)
		}
	}
}

// remember remembers the directories that the process will be able to write.
func (g *grants) remember() error {
	for _, dir := range g.policy.Write {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue // a file has no links in it
		}
		root, _ := workspace.ParseDir(dir) // only for people
		for _, id := range placeIDs(dir) {
			if err := accept(g.writable, consent.Consent{ID: id, Root: root}); err != nil {
				return fmt.Errorf("cannot remember where the sandbox lets it write: %w", err)
			}
		}
	}
	return nil
}

// Interpreter returns the program that runs a script: a path, or a name that env looks up in PATH,
// such as "node". It returns "" for other programs.
func Interpreter(script string) string {
	f, err := os.Open(script)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	line, _, _ := bufio.NewReaderSize(f, 256).ReadLine() // nothing for a directory
	rest, ok := strings.CutPrefix(string(line), "#!")
	words := strings.Fields(rest)
	if !ok || len(words) == 0 {
		return ""
	}
	if words[0] != "/usr/bin/env" {
		return words[0]
	}
	for _, word := range words[1:] {
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			return word
		}
	}
	return ""
}

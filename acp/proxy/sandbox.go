package proxy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/sandbox"
)

// SandboxMode is how much an agent's processes are restricted: SandboxOff, SandboxWrite or
// SandboxStrict.
type SandboxMode = sandbox.Mode

// The modes of the sandbox.
const (
	// SandboxOff does not restrict them.
	SandboxOff = sandbox.Off
	// SandboxWrite lets them change files only in the session's roots, the temporary directory and
	// the agent's own state.
	SandboxWrite = sandbox.Write
	// SandboxStrict lets them also read only there, and in directories of the system, of the agent's
	// program and of PATH.
	SandboxStrict = sandbox.Strict
)

// ParseSandboxMode parses off, write or strict.
func ParseSandboxMode(s string) (SandboxMode, error) { return sandbox.ParseMode(s) }

// Sandbox says what the agent's processes, and whatever they start, may do with files by
// themselves. The zero Sandbox does not restrict them. A restriction cannot be widened, so each set
// of roots has a process.
type Sandbox struct {
	Mode SandboxMode
	// Write and Read are files and directories that it may also write or read: absolute paths, or
	// such as in Profile.State. Those in Write must exist.
	Write, Read []string
	// Optional says to start the agent without a sandbox where there is none, with a warning in each
	// session. Otherwise it does not start.
	Optional bool
}

// sandboxRoots returns the roots of s that its child is restricted to, joined by NUL, or "" if it
// is not restricted.
func (p *proxy) sandboxRoots(s *session) string {
	if p.options.Profile.Sandbox.Mode == SandboxOff || p.options.Profile.unprotected() != nil {
		return ""
	}
	var roots []string
	for _, root := range s.host.Workspace().Opened() {
		roots = append(roots, root.Real.String())
	}
	return strings.Join(roots, "\x00")
}

// unprotected returns why the agent has no sandbox although it should have one if possible, or nil.
func (p Profile) unprotected() error {
	if p.Sandbox.Mode == SandboxOff || !p.Sandbox.Optional {
		return nil
	}
	return sandbox.Available()
}

// sandboxInEffect describes the sandbox for /roots.
func (p Profile) sandboxInEffect() string {
	if p.unprotected() != nil {
		return SandboxOff.String() + ", because it is not available here"
	}
	return p.Sandbox.Mode.String()
}

// sandboxNotice tells the user that the agent runs without the sandbox.
func (p Profile) sandboxNotice() string {
	err := p.unprotected()
	if err == nil {
		return ""
	}
	return fmt.Sprintf("The agent runs without a sandbox and can write wherever you can: %v.\n\n", err)
}

// Restrict returns c with p's sandbox, for sessions with these roots, as real paths. It creates the
// agent's directories for its state: some agents hang without them.
func (p Profile) Restrict(c Command, roots []string) (Command, error) {
	mode := p.Sandbox.Mode
	if mode == SandboxOff || p.unprotected() != nil {
		return c, nil
	}
	if err := sandbox.Available(); err != nil {
		return c, fmt.Errorf("cannot start %q in the sandbox: %w "+
			`("sandboxFallback": "warn" starts it without one)`, c.Path, err)
	}
	policy := sandbox.Policy{Mode: mode, Write: slices.Clone(roots)}
	add := func(path string) error {
		// A path in a directory that is listed already is part of it. It is not followed: an agent
		// may have put a link there.
		if path == "" || slices.ContainsFunc(policy.Write,
			func(dir string) bool { return dir == path || isBelow(dir, path) }) {
			return nil
		}
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			policy.Write = append(policy.Write, real)
		}
		return err
	}
	temp := expandDir("$"+tempVariable+"/", c)
	if temp == "" {
		temp = os.TempDir()
	}
	if err := add(filepath.Clean(temp)); err != nil {
		return c, fmt.Errorf("the sandbox of %q: %w", c.Path, err)
	}
	for _, name := range p.State {
		path := expandDir(name, c)
		if path != "" && strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o700); err != nil {
				return c, fmt.Errorf("the sandbox of %q needs its directory: %w", c.Path, err)
			}
		}
		if err := add(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return c, fmt.Errorf("the sandbox of %q: %w", c.Path, err)
		}
	}
	for _, name := range p.Sandbox.Write {
		if err := add(expandDir(name, c)); err != nil {
			return c, fmt.Errorf("the sandbox of %q may write to a path that cannot be used: %w",
				c.Path, err)
		}
	}
	if mode == SandboxStrict {
		for _, name := range p.Sandbox.Read {
			policy.Read = append(policy.Read, expandDir(name, c))
		}
		policy.Read = append(policy.Read, installation(c)...)
		policy.Read = slices.DeleteFunc(policy.Read,
			func(path string) bool { return !filepath.IsAbs(path) })
	}
	c.Sandbox = policy
	return c, nil
}

// isBelow reports whether path is below dir.
func isBelow(dir, path string) bool {
	_, below := relativeTo(dir, path)
	return below
}

// expandDir returns a path that begins with "~/" or with "$NAME/" as c's process would see it, or ""
// if the variable is not set. It returns other paths as they are.
func expandDir(path string, c Command) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = "$HOME/" + rest
	}
	name, rest, _ := strings.Cut(path, "/")
	name, isVariable := strings.CutPrefix(name, "$")
	if !isVariable {
		return path
	}
	value := os.Getenv(name)
	for _, entry := range c.Env {
		if set, ok := strings.CutPrefix(entry, name+"="); ok {
			value = set
		}
	}
	if !filepath.IsAbs(value) {
		return ""
	}
	return filepath.Join(value, rest)
}

// installation returns what a program needs to read of itself, and the directories in which it
// looks for others. "" stands for what is unknown.
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

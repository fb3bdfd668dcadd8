// Package sandbox restricts what a child process and its descendants may do with files.
//
// A user configures [Settings], from which package confine makes the [Policy] of a command: the
// list of permitted places. [Policy.Run] starts a process that is held to its policy. A process
// cannot lift its restriction, and nothing else in our own process is restricted.
//
// What holds a process to its policy is a mechanism. On Linux the kernel does it with Landlock, for
// root too: a thread restricts itself, starts the child, and ends. On macOS the child is started by
// sandbox-exec. For another system, add a file with the functions of system_other.go.
//
// A process with a list of hosts has an [Outlet] besides, which leads to a proxy in our process. On
// Linux the outlet is in a network namespace. Whoever may make namespaces also gets mounts and
// kernel its own objects (namespace_linux.go), and a filter of system calls closes what Landlock
// and namespaces leave open (seccomp_linux.go).
//
// Only these places assume something about the mechanism:
//
//   - [Refused] expects a refused access to fail with EACCES or EPERM; a mechanism that hides files
//     lets it fail with ENOENT. acp/proxy/hints.go explains what it recognizes to users.
//   - internal/process starts every command without Pdeathsig, because the thread that starts a
//     restricted one ends.
//   - internal/process/start.go takes an error of permission in mode Strict for one of the sandbox.
//   - The help texts in internal/cli/help, and docs/security.md, name the version of Linux.
//
// The rules do not cover: modes, owners, times and extended attributes of files, sockets in the
// file system, the network except for TCP ports and lists of hosts, and kernel interfaces for root
// that are not files. docs/security.md describes this for users.
package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Mode is how much a process is restricted.
type Mode string

const (
	// Off does not restrict it.
	Off Mode = ""
	// Write restricts what it creates, changes and removes.
	Write Mode = "write"
	// Strict also restricts what it reads and executes.
	Strict Mode = "strict"
)

// ParseMode parses off, write or strict.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case "off":
		return Off, nil
	case Write, Strict:
		return m, nil
	}
	return Off, fmt.Errorf("%q is not a mode of the sandbox: use off, write or strict", s)
}

// String returns the mode as ParseMode reads it.
func (m Mode) String() string {
	if m == Off {
		return "off"
	}
	return string(m)
}

// Settings are what a user configures for a command. The zero value does not restrict it.
type Settings struct {
	Mode Mode
	// Write and Read are files and directories that the command may also write, or also read in
	// mode Strict. They are absolute, or begin with "~/" or with "$NAME/", a variable of the
	// command's environment. Those in Write must exist.
	Write, Read []string
	// State are paths in the same notation that it may write if they exist. Those that end with "/"
	// are directories, which are created. A variable may be unset.
	State []string
	// Ports are the TCP ports to which it may connect.
	Ports hosts.Ports
	// Hosts are the hosts to which it may connect. If they are limited, it does so through a proxy
	// of ours.
	Hosts hosts.Hosts
	// Helper is the command line of our program that calls RunDeferred of internal/process, with
	// which an ordinary user gets a namespace. Nil means that only root gets one.
	Helper []string
	// Optional says to start the command without a sandbox if the system has none, and to tell the
	// user. Otherwise the command does not start.
	Optional bool
	// Records is the directory of consents, in which is kept what restricted processes could write
	// and which links may be followed; see internal/permission/consent. If it is empty, nothing is
	// remembered.
	Records string
	// Own are acp-agent's own files and directories, which are never suggested as something to add
	// to Write or Read.
	Own []string
	// Hidden are directories that the command cannot read in any mode where the system lets us hide
	// them. One that has the command's program, or something that it is granted, is not hidden.
	Hidden []string
}

// Available returns nil if the system can restrict processes as s says, and otherwise an
// [ErrUnavailable] with an explanation.
func (s Settings) Available() error {
	return Policy{Mode: Write, Ports: s.Ports}.available()
}

// Unprotected returns why a command runs without a sandbox although it should have one if possible,
// or nil.
func (s Settings) Unprotected() error {
	if s.Mode == Off || !s.Optional {
		return nil
	}
	return s.Available()
}

// Policy says what a process may do. The zero Policy does not restrict it. It is passed on to other
// processes as JSON, so no list in it may mean something else if it is nil than if it is empty.
type Policy struct {
	Mode Mode
	// Write are the directories in which it may create, change and remove files, and files that it
	// may change. They are absolute, exist, and contain no links, because a restricted process
	// could have planted a link in a directory that it may write. Terminals, /dev/null and /dev/shm
	// are added.
	Write []string
	// Keep are directories in which it may change nothing, although one in Write may contain them:
	// the roots of a session that may only be read. Of directories in each other the innermost
	// counts. They contain no links.
	Keep []string `json:",omitempty"`
	// Read are the files and directories that it may read in mode Strict, besides those in Write
	// and those of the system. Paths that do not exist, or contain links, are left out.
	Read []string
	// Hidden are directories that it cannot read, where the system lets us hide them. They contain
	// no links.
	Hidden []string `json:",omitempty"`
	// Ports, Hosts and Helper are those of [Settings]. A process with limited Hosts is started only
	// with an Outlet, which internal/process makes.
	Ports  hosts.Ports
	Hosts  hosts.Hosts
	Helper []string `json:",omitempty"`
	// Own is that of [Settings].
	Own []string `json:"-"`
	// Outlet is its only way into the network, or nil if the network is not restricted by hosts.
	Outlet *Outlet `json:",omitempty"`
}

// Writes reports whether p lets a process write to path, which has no links.
func (p Policy) Writes(path string) bool {
	return p.Mode == Off || deepest(p.Write, path) > deepest(p.Keep, path)
}

// Keeps reports whether path is, or lies in, a directory of p.Keep where p lets a process write
// nothing.
func (p Policy) Keeps(path string) bool { return anyContains(p.Keep, path) && !p.Writes(path) }

// deepest returns the length of the innermost of dirs that path is or lies in, or -1.
func deepest(dirs []string, path string) int {
	found := -1
	for _, dir := range dirs {
		if Contains(dir, path) {
			found = max(found, len(dir))
		}
	}
	return found
}

// kept returns the directories of p.Keep that p.Write would grant.
func (p Policy) kept() (kept []string) {
	for _, dir := range p.Keep {
		if anyContains(p.Write, dir) && p.Keeps(dir) {
			kept = append(kept, dir)
		}
	}
	return kept
}

// Reads reports whether p lets a process read path, which has no links.
func (p Policy) Reads(path string) bool {
	return p.Mode != Strict || p.Writes(path) || anyContains(p.Read, path) ||
		anyContains(p.Keep, path) || anyContains(systemPaths(), path) ||
		anyContains(devices(), path)
}

// Describe says in Markdown what p grants by name, "" if it restricts nothing.
func (p Policy) Describe() string {
	if p.Mode == Off {
		return ""
	}
	var b strings.Builder
	list := func(what string, paths []string) {
		fmt.Fprintf(&b, "It may %s:\n\n", what)
		for _, path := range paths {
			fmt.Fprintf(&b, "- %s\n", text.Code(text.Printable(path)))
		}
		b.WriteString("\n")
	}
	list("change files in", outermost(p.Write, nil))
	if p.Mode == Strict {
		read := outermost(p.Read, func(path string) bool {
			return p.Writes(path) || anyContains(systemPaths(), path)
		})
		list("also read, besides directories of the system", read)
	}
	if p.Ports.Limited {
		ports := strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Ports.List), " ", ", "), "[]")
		fmt.Fprintf(&b, "It may connect to these TCP ports only: %s\n\n", cmp.Or(ports, "none"))
	}
	return b.String()
}

// outermost returns those of paths, in order, that lie in no other one, and of which known is
// false.
func outermost(paths []string, known func(path string) bool) (outer []string) {
	for _, path := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		if !anyContains(outer, path) && (known == nil || !known(path)) {
			outer = append(outer, path)
		}
	}
	return outer
}

// anyContains reports whether path is one of dirs or lies in one.
func anyContains(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return Contains(dir, path) })
}

// Contains reports whether path is dir or lies in it.
func Contains(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// Network is how a list of hosts is enforced.
type Network string

const (
	// OwnNetwork gives the process its own network, which has only this process's own loopback
	// and the proxy. Nothing else can be reached, whatever the protocol.
	OwnNetwork Network = "namespace"
	// ProxyPort lets it connect to the TCP port of the proxy, on any machine.
	ProxyPort Network = "ports"
)

// Outlet is the only way into the network of a process with a list of hosts.
type Outlet struct {
	// Level is OwnNetwork or ProxyPort.
	Level Network
	// Ports are the TCP ports to which the process may connect, at level ProxyPort on any machine.
	// At level OwnNetwork others listen for it at these ports of its loopback interface.
	Ports []uint16
	// Entered says that our own thread is in the process's namespace already.
	Entered bool
}

// Launch is how a program is started.
type Launch struct {
	// Path is the program.
	Path string
	// Args are its arguments, beginning with its name.
	Args []string
	// Listening receives the sockets that listen at the ports of an [Outlet] at level OwnNetwork,
	// of IPv4 and IPv6, before the program starts.
	Listening func([]*os.File) error
}

// Run calls start with how to start the program of l, so that the process is held to p. start must
// start the process on its own goroutine, or replace ours by it. The process must not be tied to
// the thread that starts it (see Pdeathsig in [syscall.SysProcAttr]), which may end at once.
//
// If the process cannot be restricted, Run returns an error without calling start. It is
// [ErrUnavailable] if the system has no sandbox.
func (p Policy) Run(l Launch, start func(Launch) error) error {
	switch {
	case p.Hosts.Limited && p.Outlet == nil:
		return setupError(errors.New("a list of hosts needs a proxy"))
	case p.Mode == Off:
		return start(l)
	}
	return p.run(l, start)
}

// ErrUnavailable is the cause of an error that says why this system has no sandbox.
var ErrUnavailable = errors.New("the sandbox is not available")

func unavailable(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUnavailable, fmt.Errorf(format, args...))
}

func setupError(err error) error { return fmt.Errorf("%w: %w", ErrSetup, err) }

// ErrSetup is the cause of an error that says why a mechanism that is available failed.
var ErrSetup = errors.New("cannot create the sandbox")

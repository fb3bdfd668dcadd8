package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
)

// A path that another process opens, such as an editor, an agent or an MCP server, is handed over.
// The process does not use our handles, so each such path passes HandOverFile or HandOverDir first:
// those in an agent's requests to the editor (acp/internal/session/access), those of a permission
// request that is answered without asking (acp/permission.go), and the working directories of MCP
// servers (acp/mcp.go, acp/proxy/relays.go and internal/mcp/mcpclient) and of a model's commands
// (acp/model/run_child.go). The exceptions are the session's roots themselves, which agents
// (acp/proxy) and MCP servers (internal/mcp/mcproots) are told as the client gave them, and agents,
// which are started in our own working directory.
//
// A path may lead elsewhere after the check. Where a restricted process could gain from that,
// nothing is handed over: its files are served by handle (acp/internal/session/access), and a
// command is restricted wherever it begins.

// HandOverFile checks a path before it is given to another process, such as an editor, that opens
// it as a file. It returns an error unless the other process would reach the same file as this
// workspace: a regular file without other hard links, or a name that is free in an existing
// directory. It follows links, the last one too. path must be absolute.
//
// The workspace uses the directories that it opened, and other processes use what is at the path
// now. So a path into a root that was replaced is an error. A replacement after the check goes
// unnoticed.
func (w *Workspace) HandOverFile(path string) error {
	return w.handOver(path, orMissing, func(found arrival) error {
		info, err := found.describe()
		if err != nil {
			return err
		}
		if info != nil && dirfd.Links(info) > 1 {
			return failed("open", path, errHardLinks)
		}
		there := resolveDir(Dir{path}) // what the system finds at the path
		dir, dirErr := os.Stat(there.parent().String())
		file, fileErr := os.Lstat(there.String())
		held, err := found.dir.Lstat(".")
		switch {
		case err != nil:
			return failed("open", path, err)
		case dirErr != nil || !os.SameFile(held, dir):
			return w.redirected(path)
		case (fileErr != nil) != (info == nil),
			fileErr == nil && !os.SameFile(file, info):
			return dirfd.ErrChanged
		}
		return nil
	})
}

// HandOverDir checks a path before it is given to another process as a directory, such as its
// working directory. It is [Workspace.HandOverFile] for a directory that exists.
func (w *Workspace) HandOverDir(path string) error {
	return w.handOver(path, followLast, func(found arrival) error {
		if !found.stat.IsDir() {
			return failed("open", path, syscall.ENOTDIR)
		}
		if there, err := os.Stat(path); err != nil || !found.stat.SameFile(there) {
			return w.redirected(path)
		}
		return nil
	})
}

// HandOver checks a path before it is given to another process as a file or a directory.
func (w *Workspace) HandOver(path string) error {
	if w.HandOverDir(path) == nil {
		return nil
	}
	return w.HandOverFile(path)
}

var errHardLinks = fmt.Errorf("%w: the file has other hard links, "+
	"which may be outside the session's folders: use a copy of it", fs.ErrPermission)

func (w *Workspace) handOver(path string, want ending, check func(arrival) error) error {
	return w.resolvePath(path, want, func(found arrival) error {
		switch root := found.ref.root; {
		case !filepath.IsAbs(path):
			return failed("open", path, fmt.Errorf("%w: not an absolute path", fs.ErrInvalid))
		case w.opened[root.Index].state() != OK:
			return &ReplacedError{path, root.Dir}
		}
		if err := want.checkKind(found); err != nil {
			return err
		}
		return check(found)
	})
}

// redirected returns the error for a path that leads elsewhere than the workspace's handles: a root
// was replaced, or something has just changed.
func (w *Workspace) redirected(path string) error {
	for _, root := range w.opened {
		if root.state() != OK {
			return &ReplacedError{path, root.Dir}
		}
	}
	return dirfd.ErrChanged
}

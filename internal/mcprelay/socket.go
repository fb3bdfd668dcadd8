package mcprelay

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/acp-agent/acp-agent/internal/privatefile"
)

// maxSocketPath is the longest path of a socket on any of our systems, which is that of macOS.
const maxSocketPath = 103

// SocketError: no socket could be made, or none answered.
type SocketError struct {
	// Path is the socket's, or its directory's.
	Path string
	// Hint says what to do, "" if there is nothing to say.
	Hint string
	// Err is the cause.
	Err error
}

func (e *SocketError) Error() string {
	text := fmt.Sprintf("the socket %s for MCP relays cannot be used: %v", e.Path, e.Err)
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// Unwrap returns the cause.
func (e *SocketError) Unwrap() error { return e.Err }

// listen makes a socket with a random name in a directory that is closed to others.
func listen(dir string) (net.Listener, error) {
	if err := privatefile.MakeDir(dir); err != nil {
		return nil, &SocketError{Path: dir, Err: err}
	}
	sweep(dir)
	path := filepath.Join(dir, random(8))
	if len(path) > maxSocketPath {
		return nil, &SocketError{Path: path, Hint: "choose a shorter state directory with --state-dir",
			Err: fmt.Errorf("its path has %d bytes, and %d are the most", len(path), maxSocketPath)}
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, &SocketError{Path: path, Err: err}
	}
	return listener, nil
}

// leftFor is how long a socket that nobody listens to is left alone: one that is just being made is such, too.
const leftFor = time.Hour

// sweep removes the sockets of processes that were killed.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || info.Mode().Type()&fs.ModeSocket == 0 || time.Since(info.ModTime()) < leftFor {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
			_ = conn.Close()
			continue
		}
		_ = os.Remove(path)
	}
}

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
)

// readRegular reads a file. It refuses pipes and devices, which might never end.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

var errNotRegular = errors.New("it is not a regular file")

// appendFile appends to a log or trace. The first error of a write is told on stderr.
type appendFile struct {
	file   io.WriteCloser
	flag   string
	stderr io.Writer
	once   sync.Once
}

// openAppend opens the file that a flag names. It refuses pipes and devices, whose readers could
// stop the program, except for /dev/stderr and the null device.
func openAppend(flag, path string, stderr io.Writer) (*appendFile, error) {
	info, err := os.Stat(path)
	special := err == nil && !info.IsDir() && !info.Mode().IsRegular()
	if special && path != os.DevNull && path != "/dev/stderr" {
		return nil, usagef("--%s: open %s: %v", flag, path, errNotRegular)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, usagef("--%s: %v", flag, err)
	}
	return &appendFile{file: file, flag: flag, stderr: stderr}, nil
}

// Write implements [io.Writer].
func (f *appendFile) Write(b []byte) (int, error) {
	n, err := f.file.Write(b)
	if err != nil {
		f.once.Do(func() {
			fmt.Fprintf(f.stderr, "acp-agent: --%s is incomplete: %v\n", f.flag, err)
		})
	}
	return n, err
}

// close closes the file.
func (f *appendFile) close() { _ = f.file.Close() }

// warnAboutFiles warns about a configuration file and a state directory that other users own or can
// write to: they could name commands to run, or add consents to start MCP servers.
func (set *settings) warnAboutFiles(logger *slog.Logger) {
	warnAboutFile(logger, "configuration file", set.config.path, "chmod go-w")
	if dir, err := set.stateDirectory(); err == nil {
		warnAboutFile(logger, "state directory", dir, "chmod 700")
	}
}

func warnAboutFile(logger *slog.Logger, what, path, repair string) {
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	if ownedByAnother(info) {
		logger.Warn("the "+what+" belongs to another user", "path", path)
	}
	if writableByOthers(info) {
		logger.Warn("other users can write to the "+what+"; make it private with "+repair,
			"path", path, "mode", info.Mode().Perm())
	}
}

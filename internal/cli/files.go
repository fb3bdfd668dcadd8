package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/usage"
)

// appendFile appends to a log or trace. It reports the first write error on stderr. When another
// program has renamed or removed the file, it creates a new one, so the file can be rotated. Its
// methods are safe for concurrent use.
type appendFile struct {
	path, flag string
	stderr     io.Writer

	mu      sync.Mutex
	file    io.WriteCloser
	info    os.FileInfo // of file, nil if it is not a regular file
	checked time.Time   // when the path was looked at last
	failed  error       // of the last Write
}

// openAppend opens the file that a flag names. It refuses pipes and devices, whose readers could
// stop the program, except for /dev/stderr and the null device.
func openAppend(flag, path string, stderr io.Writer) (*appendFile, error) {
	info, err := os.Stat(path)
	special := err == nil && !info.IsDir() && !info.Mode().IsRegular()
	if special && path != os.DevNull && path != "/dev/stderr" {
		return nil, usage.Errorf("--%s: open %s: %v", flag, path, namedfile.ErrNotRegular)
	}
	f := &appendFile{path: path, flag: flag, stderr: stderr}
	if err := f.open(); err != nil {
		return nil, usage.Errorf("--%s: %v", flag, namedfile.ExplainNew(err))
	}
	if f.path, err = filepath.Abs(path); err != nil {
		return nil, errors.Join(usage.Errorf("--%s: %v", flag, err), f.file.Close())
	}
	return f, nil
}

func (f *appendFile) open() error {
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if f.file != nil {
		_ = f.file.Close()
	}
	f.file, f.info, f.checked = file, nil, time.Now()
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		f.info = info
	}
	return nil
}

// reopenMoved opens the file again if another one, or none, has its path. It looks once a second.
func (f *appendFile) reopenMoved() {
	if f.info == nil || time.Since(f.checked) < time.Second {
		return
	}
	f.checked = time.Now()
	if now, err := os.Stat(f.path); err != nil && errors.Is(err, fs.ErrNotExist) ||
		err == nil && now.Mode().IsRegular() && !os.SameFile(now, f.info) {
		_ = f.open() // or the old file gets what there is to write
	}
}

// Write implements [io.Writer].
func (f *appendFile) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reopenMoved()
	n, err := f.file.Write(b)
	if err != nil && f.failed == nil {
		fmt.Fprintf(f.stderr, "acp-agent: --%s is incomplete: %v\n", f.flag, err)
	}
	f.failed = err
	return n, err
}

// err returns why the last Write has failed, nil if it has not.
func (f *appendFile) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

func (f *appendFile) close() { _ = f.file.Close() }

// warnAboutFiles logs the warnings about files, or prints them where nothing is logged.
func (set *settings) warnAboutFiles(logger *slog.Logger) {
	for _, w := range set.fileWarnings() {
		if set.isQuiet() {
			set.note("%s (%s)", w.text, w.path)
			continue
		}
		logger.Warn(w.text, "path", w.path)
	}
}

// A fileWarning is a warning that others can change a file of the program.
type fileWarning struct{ path, text string }

// fileWarnings returns warnings about a configuration file and a state directory that other users
// own or can write to: they could name commands to run, or add consents to start MCP servers.
func (set *settings) fileWarnings() []fileWarning {
	warnings := warningsAbout("configuration file", set.config.Path, "chmod go-w")
	return append(warnings, warningsAbout("state directory", set.dir(), "chmod 700")...)
}

func warningsAbout(what, path, repair string) (warnings []fileWarning) {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	if ownedByAnother(info) {
		warnings = append(warnings, fileWarning{path, "the " + what + " belongs to another user"})
	}
	if writableByOthers(info) {
		warnings = append(warnings, fileWarning{path,
			"other users can write to the " + what + "; make it private with " + repair})
	}
	return warnings
}

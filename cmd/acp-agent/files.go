package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/acp-agent/acp-agent/internal/namedfile"
)

// appendFile appends to a log or trace. It reports the first write error on stderr.
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
		return nil, usagef("--%s: open %s: %v", flag, path, namedfile.ErrNotRegular)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, usagef("--%s: %v", flag, namedfile.Explain(err))
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

// warnAboutFiles logs the warnings about files.
func (set *settings) warnAboutFiles(logger *slog.Logger) {
	for _, w := range set.fileWarnings() {
		logger.Warn(w.text, "path", w.path)
	}
}

// A fileWarning is a warning that others can change a file of the program.
type fileWarning struct{ path, text string }

// fileWarnings returns warnings about a configuration file and a state directory that other users
// own or can write to: they could name commands to run, or add consents to start MCP servers.
func (set *settings) fileWarnings() []fileWarning {
	warnings := warningsAbout("configuration file", set.config.Path, "chmod go-w")
	if dir, err := set.stateDirectory(); err == nil {
		warnings = append(warnings, warningsAbout("state directory", dir, "chmod 700")...)
	}
	return warnings
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

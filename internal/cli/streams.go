package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
)

// streams are the program's standard streams, and the signals that it gets.
type streams struct {
	in       io.Reader
	out, err io.Writer
	// interrupts says what Ctrl-C ends.
	interrupts *interrupts
}

// interactive reports whether standard input is a terminal.
func (s streams) interactive() bool { return terminal.Is(s.in) }

// isPiped reports whether standard input is a pipe or a file, which somebody has chosen for it.
func (s streams) isPiped() bool {
	file, ok := s.in.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&os.ModeNamedPipe != 0)
}

// input returns standard input. Reading what it has ends with ctx; if that may take long, it says
// so.
func (s streams) input(ctx context.Context, what string) io.Reader {
	in := terminal.NewReader(s.in)
	begin := sync.OnceFunc(func() {
		if s.interactive() {
			s.note("reading %s from standard input; Ctrl-D ends it, Ctrl-C stops", what)
		}
	})
	return readFunc(func(b []byte) (int, error) {
		begin()
		const long = 2 * time.Second
		said := time.AfterFunc(long, func() {
			if !s.interactive() { // a program that starts others may leave their input open for ever
				s.note("reading standard input until it ends; add </dev/null if there is no input")
			}
		})
		defer said.Stop()
		return in.Read(ctx, b)
	})
}

// readFunc is an [io.Reader].
type readFunc func([]byte) (int, error)

func (read readFunc) Read(b []byte) (int, error) { return read(b) }

// note tells the user something on standard error.
func (s streams) note(format string, args ...any) {
	_ = terminal.Say(s.err, "acp-agent: "+format, args...)
}

// printLines prints all as lines of JSON with --json, and calls people without.
func printLines[T any](set *settings, all []T, people func() error) error {
	if !set.json {
		return people()
	}
	for _, one := range all {
		if err := writeJSON(set.out, one); err != nil {
			return err
		}
	}
	return nil
}

// writeJSON writes v as a line of JSON. Characters that a terminal would obey or not show are
// escaped.
func writeJSON(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text.EscapeJSON(line))
	return err
}

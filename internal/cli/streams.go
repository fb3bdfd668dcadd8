package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

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

func standardStreams() streams { return streams{in: os.Stdin, out: os.Stdout, err: os.Stderr} }

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

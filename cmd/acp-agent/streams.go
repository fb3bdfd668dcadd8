package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
)

// streams are the program's standard streams.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func standardStreams() streams { return streams{in: os.Stdin, out: os.Stdout, err: os.Stderr} }

// interactive reports whether standard input is a terminal.
func (s streams) interactive() bool { return terminal.Is(s.in) }

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

package main

import (
	"io"
	"os"

	"github.com/mattn/go-isatty"
)

// streams are the program's standard streams.
type streams struct {
	in       io.Reader
	out, err io.Writer
	// interactive reports whether a person is typing into in.
	interactive func() bool
}

func standardStreams() streams {
	return streams{in: os.Stdin, out: os.Stdout, err: os.Stderr, interactive: func() bool {
		fd := os.Stdin.Fd()
		return isatty.IsTerminal(fd) || isatty.IsCygwinTerminal(fd)
	}}
}

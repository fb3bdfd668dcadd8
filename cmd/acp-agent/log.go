package main

import (
	"io"
	"log/slog"
	"os"
)

// logFlags say where the log goes.
type logFlags struct {
	level slog.Level
	file  string
}

// open returns the logger and what closes its file.
func (f logFlags) open(stderr io.Writer) (*slog.Logger, func(), error) {
	out, closeFile := stderr, func() {}
	if f.file != "" {
		file, err := os.OpenFile(f.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, usagef("--log-file: %v", err)
		}
		out, closeFile = file, func() { _ = file.Close() }
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: f.level})), closeFile, nil
}

package tools

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/acp-agent/acp-agent/workspace"
)

const (
	// sniffed is how much of a file is looked at for a NUL, in bytes.
	sniffed = 8 << 10
	// firstRead is how much of a file is read before its size matters, in bytes.
	firstRead = 64 << 10
)

var (
	errBinary = errors.New("it is a binary file")
	errLarge  = errors.New("it is too large")
)

// slurp reads a file of at most limit bytes into buffer, which it grows as needed. The error is errLarge,
// errBinary for a NUL in what is sniffed, the context's, or that of reading. Whether it is UTF-8 is
// for the caller to look at.
func slurp(ctx context.Context, file *workspace.File, limit int64, buffer []byte) ([]byte, error) {
	buffer = slices.Grow(buffer[:0], firstRead)
	for first := true; ; first = false {
		if ctx.Err() != nil {
			return buffer, context.Cause(ctx)
		}
		size := firstRead
		if !first {
			if len(buffer) == firstRead {
				if err := checkSize(file, limit); err != nil {
					return buffer, err
				}
			}
			size = max(firstRead, len(buffer))
		}
		buffer = slices.Grow(buffer, size)
		n, err := io.ReadFull(file, buffer[len(buffer):len(buffer)+size])
		buffer = buffer[:len(buffer)+n]
		ended := err == io.EOF || err == io.ErrUnexpectedEOF
		switch {
		case err != nil && !ended:
			return buffer, err
		case int64(len(buffer)) > limit:
			return buffer, errLarge
		case first && bytes.IndexByte(buffer[:min(len(buffer), sniffed)], 0) >= 0:
			return buffer, errBinary
		case ended:
			return buffer, nil
		}
	}
}

// checkSize spares reading a file that is too large anyway.
func checkSize(file *workspace.File, limit int64) error {
	info, err := file.Stat()
	if err == nil && info.Size() > limit {
		err = errLarge
	}
	return err
}

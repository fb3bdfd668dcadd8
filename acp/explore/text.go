package explore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/workspace"
)

const (
	// sniffed is how much of a file is looked at for a NUL, in bytes.
	sniffed = 8 << 10
	// step is how much is read or searched between two looks at the context, in bytes.
	step = 16 << 10
)

var (
	errBinary = errors.New("it is a binary file")
	errLarge  = errors.New("it is too large")
)

// readText reads a file of at most limit bytes into buffer, which it grows as needed. The
// error is errBinary, errLarge, the context's, or that of reading.
func readText(ctx context.Context, file *workspace.File, limit int64, buffer []byte) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return buffer, err
	}
	if info.Size() > limit {
		return buffer, errLarge
	}
	// One more than the size, so that the end is seen with the last read.
	buffer = slices.Grow(buffer[:0], int(info.Size())+1)
	for checked := false; ; {
		if ctx.Err() != nil {
			return buffer, context.Cause(ctx)
		}
		if int64(len(buffer)) > limit { // it grows while it is read
			return buffer, errLarge
		}
		buffer = slices.Grow(buffer, 1)
		n, err := file.Read(buffer[len(buffer):min(cap(buffer), len(buffer)+step)])
		buffer = buffer[:len(buffer)+n]
		if !checked && (len(buffer) >= sniffed || err != nil) {
			checked = true
			if hasNUL(buffer) {
				return buffer, errBinary
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return buffer, err
		}
	}
	if !utf8.Valid(buffer) {
		return buffer, errBinary
	}
	return buffer, nil
}

func hasNUL(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), sniffed)], 0) >= 0
}

// cutLine is the first line of text, without its end, and what comes after it.
func cutLine(text []byte) (line, rest []byte) {
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		return text[:end], text[end+1:]
	}
	return text, nil
}

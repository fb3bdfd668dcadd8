package discovery

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/workspace"
)

// readText reads an open file. If ok is false, the artifact says why.
func (s *scanner) readText(a *Artifact, f *workspace.File) (text string, ok bool) {
	var b []byte
	info, err := f.Stat()
	if err == nil {
		if a.Size = info.Size(); a.Size <= int64(s.limits.fileSize) {
			b, err = io.ReadAll(io.LimitReader(f, int64(s.limits.fileSize)))
		}
	}
	if err != nil {
		a.invalid(reasonOf(err))
		return "", false
	}
	b, ok = s.decode(a, b)
	return string(b), ok
}

// readPath reads the file at a path.
func (s *scanner) readPath(path string) (text string, err error) {
	f, err := s.ws.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var a Artifact
	text, ok := s.readText(&a, f)
	if !ok {
		err = fmt.Errorf("%s: %s", path, a.Reason)
	}
	return text, err
}

// decode returns a file's content as UTF-8 with line feeds for line ends and no byte order mark. If
// ok is false, the artifact says why.
func (s *scanner) decode(a *Artifact, b []byte) (text []byte, ok bool) {
	if a.Size > int64(s.limits.fileSize) {
		a.State, a.Reason = TooLarge, fmt.Sprintf("it has %d bytes; the limit is %d", a.Size,
			s.limits.fileSize)
		return nil, false
	}
	s.bytes += len(b)
	switch {
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}) || bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		a.invalid("it is UTF-16; save it as UTF-8")
		return nil, false
	case bytes.IndexByte(b, 0) >= 0:
		a.invalid("it is not text: it contains NUL bytes")
		return nil, false
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if bytes.IndexByte(b, '\r') >= 0 {
		b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	}
	if !utf8.Valid(b) {
		a.diagnose("the file is not valid UTF-8; invalid bytes are shown as \uFFFD")
		b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	return b, true
}

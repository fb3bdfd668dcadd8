package discovery

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/workspace"
)

// reading is what a file made, before artifacts compete with each other.
type reading struct {
	print
	artifacts []Artifact
}

// file reads the file name in at for the row. It reports whether there is one.
func (h *hunt) file(ctx context.Context, at *place, name string) bool {
	rel := path.Join(at.rel, name)
	key := h.row.Place + "\x00" + rel
	if r, ok := h.known(at, name, key); ok {
		h.keep(at, name, key, r)
		return true
	}
	f, err := at.dir.Open(name)
	if err != nil {
		if h.missing(at, name, err) {
			return false
		}
		h.unreadable(h.row, at, name, err)
		return true
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		h.unreadable(h.row, at, name, err)
		return true
	}
	a := h.artifact(h.row, rel)
	a.Ref, a.Size, a.level = f.Ref(), info.Size(), h.level.rel
	h.keep(at, name, key, reading{printOfFile(info, f.Ref(), at, name), h.parse(ctx, a, f)})
	return true
}

// known is what was read of the file before, if it has certainly not changed since. A link is read again, because it may
// lead elsewhere, and so is what imports other files.
func (h *hunt) known(at *place, name, key string) (reading, bool) {
	if h.old == nil || h.row.Format == TextWithImports {
		return reading{}, false
	}
	before, ok := h.old.files[key]
	if !ok || !at.holds(before.artifacts[0].Ref, name) {
		return reading{}, false
	}
	info, err := at.dir.Lstat(name)
	if err != nil || info.Mode()&fs.ModeSymlink != 0 || !before.same(printOf(info.FileInfo, nil)) {
		return reading{}, false
	}
	return before, true
}

// keep adds what a file made to the findings. What a reading holds does not change any more.
func (h *hunt) keep(at *place, name, key string, r reading) {
	h.files[key] = r
	h.probes = append(h.probes, probe{at.rel, name, r.print})
	for _, a := range r.artifacts {
		if len(h.artifacts) >= h.o.MaxArtifacts {
			h.cut(h.row, at.rel, "MaxArtifacts", int64(h.o.MaxArtifacts))
			return
		}
		h.artifacts = append(h.artifacts, a)
	}
}

// parse reads a file and makes artifacts of it, based on a.
func (h *hunt) parse(ctx context.Context, a Artifact, f *workspace.File) []Artifact {
	b, ok := h.read(&a, f)
	if !ok {
		return []Artifact{a}
	}
	if a.Kind == Skill {
		b = front(b)
	}
	switch text := string(b); a.Kind {
	case Skill:
		readSkill(&a, text, h.o)
	case Command:
		readCommand(&a, text, h.base.rel, h.o)
	case MCPServer:
		return readServers(a, text, h.row.Format, h.o)
	default:
		readInstruction(&a, text, h.row.Format, h.o)
		if h.row.Format == TextWithImports && a.State == Active {
			h.imports(ctx, &a)
		}
	}
	return []Artifact{a}
}

// text is the file's text. If it is not ok the artifact says why.
func (s *search) text(a *Artifact, f *workspace.File) (text string, ok bool) {
	b, ok := s.read(a, f)
	return string(b), ok
}

// read is text as bytes, which are good until the next file is read.
func (s *search) read(a *Artifact, f *workspace.File) (text []byte, ok bool) {
	if a.Size > s.o.MaxFile {
		a.State, a.Reason = TooLarge, fmt.Sprintf("it has %d bytes; files of up to %d (MaxFile) are read", a.Size, s.o.MaxFile)
		return nil, false
	}
	b, err := s.readAll(f, a.Size)
	s.bytes += int64(len(b))
	if err != nil {
		a.invalid(reasonOf(err))
		return nil, false
	}
	b, fault := decode(b)
	if fault != "" {
		a.invalid(fault)
		return nil, false
	}
	if !utf8.Valid(b) {
		a.diagnose(RuleEncoding, "the file is not all UTF-8; what is not is shown as \uFFFD")
		b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	return b, true
}

// front is text up to the line that ends its frontmatter, all of it if there is none. Skills need no more, and are large.
func front(text []byte) []byte {
	for at := 0; ; {
		n := bytes.Index(text[at:], []byte("\n---"))
		if n < 0 {
			return text
		}
		line := at + n + 1
		at = len(text)
		if end := bytes.IndexByte(text[line:], '\n'); end >= 0 {
			at = line + end
		}
		if len(bytes.TrimRight(text[line:at], " \t\r")) == len("---") {
			return text[:at]
		}
	}
}

// readAll reads a file that had size bytes a moment ago, up to MaxFile. If that many are read at once, that is all. The
// bytes are good until the next file is read.
func (s *search) readAll(f io.Reader, size int64) ([]byte, error) {
	if int64(len(s.buffer)) <= size {
		s.buffer = make([]byte, size+4096)
	}
	n, err := f.Read(s.buffer)
	if int64(n) == size || err == io.EOF {
		return s.buffer[:n], nil
	}
	if err != nil {
		return nil, err
	}
	rest, err := io.ReadAll(io.LimitReader(f, s.o.MaxFile-int64(n)))
	return append(s.buffer[:n:n], rest...), err
}

// decode is b as text without a byte order mark, with line ends of one character.
func decode(b []byte) (text []byte, fault string) {
	if bytes.HasPrefix(b, []byte{0xff, 0xfe}) || bytes.HasPrefix(b, []byte{0xfe, 0xff}) {
		return nil, "it is UTF-16; save it as UTF-8"
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return nil, "it is not text: it contains NUL bytes"
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if bytes.IndexByte(b, '\r') >= 0 {
		b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	}
	return b, ""
}

package discovery

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/workspace"
)

// file is a file that a row names.
type file struct {
	rank int // the row's
	rel  string
}

// reading is what a file made, before artifacts compete with each other.
type reading struct {
	ref       workspace.Ref
	look      workspace.Look
	artifacts []Artifact
}

// file reads the file e in at for the row. It reports whether there is one.
func (h *hunt) file(ctx context.Context, at *place, e workspace.Entry) bool {
	key := file{h.row.rank, join(at.rel, e.Name)}
	if r, ok := h.known(at, e, key); ok {
		h.keep(at, e.Name, key, r)
		return true
	}
	text, info, err := at.dir.ReadFile(e, h.buffer, h.o.MaxFile)
	if err != nil {
		if isGone(e, err) {
			return false
		}
		h.unreadable(h.row, at, e.Name, err)
		return true
	}
	if cap(text) > cap(h.buffer) {
		h.buffer = text
	}
	a := h.artifact(h.row, key.rel)
	a.Ref, a.Size, a.level = info.Ref(), info.Size(), h.level.rel
	h.keep(at, e.Name, key, &reading{a.Ref, workspace.LookOf(info.FileInfo, h.began), h.parse(ctx, a, text)})
	return true
}

// known is what was read of the file before, if it has certainly not changed since. A link is read again, because it may
// lead elsewhere, and so is what imports other files.
func (h *hunt) known(at *place, e workspace.Entry, key file) (*reading, bool) {
	if h.old == nil || h.row.Format == TextWithImports {
		return nil, false
	}
	before, ok := h.old.files[key]
	if !ok || !at.holds(before.ref, e.Name) {
		return nil, false
	}
	info, err := at.dir.Lstat(e.Name)
	if err != nil || info.Mode()&fs.ModeSymlink != 0 || !before.look.Still(workspace.LookOf(info.FileInfo, h.began)) {
		return nil, false
	}
	return before, true
}

// keep adds what a file made to the findings. What a reading holds does not change any more.
func (h *hunt) keep(at *place, name string, key file, r *reading) {
	h.files[key] = r
	if at.holds(r.ref, name) {
		at.watchLook(name, r.look)
	} else {
		h.paths = append(h.paths, probe{path: h.path(key.rel), look: r.look, real: r.ref.Real()})
	}
	for i := range r.artifacts {
		if len(h.artifacts) >= h.o.MaxArtifacts {
			h.cut(h.row, at.rel, "MaxArtifacts", int64(h.o.MaxArtifacts))
			return
		}
		h.artifacts = append(h.artifacts, &r.artifacts[i])
	}
}

// parse makes artifacts, based on a, of a file's bytes.
func (h *hunt) parse(ctx context.Context, a Artifact, b []byte) []Artifact {
	b, ok := h.decoded(&a, b)
	if !ok {
		return []Artifact{a}
	}
	switch a.Kind {
	case Skill:
		b = front(b)
	case Command:
		b = opening(b)
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

// text is the text of an open file. If it is not ok the artifact says why.
func (s *search) text(a *Artifact, f *workspace.File) (text string, ok bool) {
	var b []byte
	if a.Size <= s.o.MaxFile {
		var err error
		if b, err = io.ReadAll(io.LimitReader(f, s.o.MaxFile)); err != nil {
			a.invalid(reasonOf(err))
			return "", false
		}
	}
	b, ok = s.decoded(a, b)
	return string(b), ok
}

// decoded is a file's bytes as text. If it is not ok the artifact says why.
func (s *search) decoded(a *Artifact, b []byte) (text []byte, ok bool) {
	if a.Size > s.o.MaxFile {
		a.State, a.Reason = TooLarge, fmt.Sprintf("it has %d bytes; files of up to %d (MaxFile) are read", a.Size, s.o.MaxFile)
		return nil, false
	}
	s.bytes += int64(len(b))
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

// opening is text up to the first line after its frontmatter that says something, which is all that a command says of itself.
func opening(text []byte) []byte {
	at := 0
	if first, _, _ := bytes.Cut(text, []byte("\n")); string(bytes.TrimSpace(first)) == "---" {
		at = len(front(text))
	}
	for at < len(text) {
		end := len(text)
		if n := bytes.IndexByte(text[at+1:], '\n'); n >= 0 {
			end = at + 1 + n
		}
		if firstLine(string(text[at:end])) != "" {
			return text[:end]
		}
		at = end
	}
	return text
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

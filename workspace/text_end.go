package workspace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"unicode/utf8"
)

// ReadTextEndFrom reads the last MaxLines lines of UTF-8 text, starting from its end. It reads r,
// which has size bytes, instead of the file at path. If they do not fit into MaxBytes, it returns
// the last ones, and CutByBytes or CutInLine says that the text begins later. It does not read a
// text larger than MaxWhole completely, so First and Total are then -1. TextOptions.First is
// ignored. The text has no Ref. Errors are those of [Workspace.ReadText].
func ReadTextEndFrom(
	ctx context.Context, r io.ReaderAt, size int64, path string, o TextOptions,
) (Text, error) {
	o, err := o.withDefaults(path)
	if err != nil {
		return Text{}, err
	}
	t := Text{Size: size, First: -1, Total: -1}
	start := textReader{path: path, o: o, line: 1}
	if err := start.checkStart(r); err != nil {
		return Text{}, err
	}
	t.BOM = start.bom
	if t.Size <= o.MaxWhole {
		s := newTextReader(path, TextOptions{First: 1, MaxLines: 1, MaxBytes: 1, MaxWhole: o.MaxWhole,
			maxSkipped: o.maxSkipped}, t.Size)
		if err := s.readLines(ctx, io.NewSectionReader(r, 0, t.Size)); err != nil {
			return Text{}, err
		}
		t.Total = s.text().Total
	}
	e := textEnd{path: path, o: o}
	if err := e.read(ctx, r, t.Size); err != nil {
		return Text{}, err
	}
	content := e.content
	if t.BOM && e.whole {
		content = bytes.TrimPrefix(content, []byte(bomUTF8))
	}
	t.Content, t.Lines, t.Cut = string(content), lineCount(content), e.cut
	if t.Total >= 0 {
		t.First = t.Total - t.Lines + 1
	}
	return t, nil
}

// checkStart looks for a byte order mark.
func (s *textReader) checkStart(r io.ReaderAt) error {
	start := make([]byte, utf8.UTFMax)
	n, err := r.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return failed("read", s.path, err)
	}
	for _, bom := range boms {
		if bytes.HasPrefix(start[:n], []byte(bom.mark)) {
			return &NotTextError{Path: s.path, Line: 1, Kind: bom.encoding}
		}
	}
	s.bom = bytes.HasPrefix(start[:n], []byte(bomUTF8))
	return nil
}

// textEnd collects the last lines of a file.
type textEnd struct {
	path    string
	o       TextOptions
	content []byte
	whole   bool // whether content begins with the file
	cut     Cut
}

// read reads a file of this size from its end, as far as necessary.
func (e *textEnd) read(ctx context.Context, r io.ReaderAt, size int64) error {
	var parts [][]byte // the last one first
	lines, length, at := 0, 0, size
	for at > 0 && lines <= e.o.MaxLines && length <= e.o.MaxBytes {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		part := make([]byte, min(at, textChunk))
		at -= int64(len(part))
		if n, err := r.ReadAt(part, at); n < len(part) { // the file has become shorter
			return failed("read", e.path, err)
		}
		if lines == 0 && length == 0 && part[len(part)-1] != '\n' {
			lines++
		}
		lines += bytes.Count(part, []byte("\n"))
		length += len(part)
		parts = append(parts, part)
	}
	slices.Reverse(parts)
	e.content, e.whole = slices.Concat(parts...), at == 0
	e.trim()
	switch {
	case bytes.IndexByte(e.content, 0) >= 0:
		return &NotTextError{Path: e.path, Kind: "binary"}
	case !utf8.Valid(e.content):
		return &NotTextError{Path: e.path, Kind: "not UTF-8"}
	default:
		return nil
	}
}

// trim removes the beginning that was not requested or does not fit.
func (e *textEnd) trim() {
	first := len(e.content) // where the first line to return begins
	for n := 0; n < e.o.MaxLines && first > 0; n++ {
		begin := bytes.LastIndexByte(e.content[:first-1], '\n') + 1
		if len(e.content)-begin > e.o.MaxBytes {
			if e.cut = CutByBytes; n == 0 {
				e.cut = CutInLine
				first = len(e.content) - e.o.MaxBytes
				for i := 1; i < utf8.UTFMax && !utf8.RuneStart(e.content[first]); i++ {
					first++
				}
			}
			break
		}
		first = begin
	}
	e.content, e.whole = e.content[first:], e.whole && first == 0
}

// lineCount returns the number of lines of a text, the last of which need not end.
func lineCount(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

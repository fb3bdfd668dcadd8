package workspace

import (
	"bytes"
	"context"
	"io"
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
	start, err := readPart(r, path, 0, min(size, utf8.UTFMax))
	if err != nil {
		return Text{}, err
	}
	length := min(size, int64(len(bomUTF8)+o.MaxBytes+1))
	end, err := readPart(r, path, size-length, length)
	if err != nil {
		return Text{}, err
	}
	t := Text{Size: size, First: -1, Total: -1}
	if t.BOM, err = checkMark(path, start); err != nil {
		return Text{}, err
	}
	if size <= o.MaxWhole {
		s := newTextReader(path, TextOptions{First: 1, MaxLines: 1, MaxBytes: 1, MaxWhole: o.MaxWhole,
			maxSkipped: o.maxSkipped}, size)
		if err := s.readLines(ctx, io.NewSectionReader(r, 0, size)); err != nil {
			return Text{}, err
		}
		t.Total = s.text().Total
	}
	if t.BOM && length == size {
		end = end[len(bomUTF8):]
	}
	end, t.Cut = o.lastLines(end)
	switch {
	case bytes.IndexByte(end, 0) >= 0:
		return Text{}, &NotTextError{Path: path, Kind: "binary"}
	case !utf8.Valid(end):
		return Text{}, &NotTextError{Path: path, Kind: "not UTF-8"}
	}
	t.Content, t.Lines = string(end), lineCount(end)
	if t.Total >= 0 {
		t.First = t.Total - t.Lines + 1
	}
	return t, nil
}

// readPart reads a part of a file.
func readPart(r io.ReaderAt, path string, at, length int64) ([]byte, error) {
	part := make([]byte, length)
	if n, err := r.ReadAt(part, at); int64(n) < length { // the file has become shorter
		return nil, failed("read", path, err)
	}
	return part, nil
}

// checkMark looks for a byte order mark at the start of a file. It fails for that of an encoding
// other than UTF-8.
func checkMark(path string, start []byte) (found bool, err error) {
	for _, bom := range boms {
		if bytes.HasPrefix(start, []byte(bom.mark)) {
			return false, &NotTextError{Path: path, Line: 1, Kind: bom.encoding}
		}
	}
	return bytes.HasPrefix(start, []byte(bomUTF8)), nil
}

// lastLines returns the last lines of a text, as many as were requested and fit.
func (o TextOptions) lastLines(text []byte) ([]byte, Cut) {
	first := len(text) // where the first line to return begins
	for n := 0; n < o.MaxLines && first > 0; n++ {
		begin := bytes.LastIndexByte(text[:first-1], '\n') + 1
		switch {
		case len(text)-begin <= o.MaxBytes:
			first = begin
			continue
		case n > 0:
			return text[first:], CutByBytes
		}
		first = len(text) - o.MaxBytes
		for i := 1; i < utf8.UTFMax && first < len(text) && !utf8.RuneStart(text[first]); i++ {
			first++
		}
		return text[first:], CutInLine
	}
	return text[first:], NotCut
}

// lineCount returns the number of lines of a text, the last of which need not end.
func lineCount(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

package workspace

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"unicode/utf8"
)

// Defaults of [TextOptions].
const (
	defaultMaxLines = 2000
	defaultMaxText  = 256 << 10
	defaultMaxWhole = 16 << 20
)

// defaultMaxSkipped is the most bytes of a file that are read to reach the first requested line.
const defaultMaxSkipped = 1 << 30

// TextOptions configure [Workspace.ReadText]. Negative numbers are an error.
type TextOptions struct {
	// First is the line to begin with, counted from 1. Zero means 1.
	First int
	// Skip is the number of bytes of the first line to leave out, to read the rest of a line that
	// was cut. The "\n" at its end is never left out, nor is a part of a character.
	Skip int
	// MaxLines is the maximum number of lines to return. Zero means 2000.
	MaxLines int
	// MaxBytes is the maximum number of bytes to return. Zero means 256 KiB.
	MaxBytes int
	// MaxWhole is the size in bytes up to which a file is always read to its end, to check all of
	// it and to count its lines. Zero means 16 MiB.
	MaxWhole int64

	maxSkipped int64 // zero means defaultMaxSkipped
}

// Cut says why a [Text] ends before its file.
type Cut string

// The reasons why a text is cut.
const (
	NotCut     Cut = ""      // the text ends with the file
	CutByLines Cut = "lines" // there are more than MaxLines lines
	CutByBytes Cut = "bytes" // the next line does not fit into MaxBytes
	CutInLine  Cut = "line"  // a single line does not fit into MaxBytes; the text is its beginning
)

// Text is some lines of a file.
type Text struct {
	// Ref is where the file was when it was read.
	Ref Ref
	// Content is the lines with their line endings as they are in the file: valid UTF-8, without a
	// byte order mark at its beginning.
	Content string
	// First is the number of the first line of Content, counted from 1. Lines is how many lines
	// Content has, 0 if the file ends before First. A line that is cut counts.
	First, Lines int
	// Skipped is the number of bytes of the first line that Content leaves out.
	Skipped int
	// Cut says why Content ends before the file does.
	Cut Cut
	// Total is the number of lines of the file, -1 if the file was not read to its end.
	Total int
	// Size is the size of the file in bytes when it was opened.
	Size int64
	// BOM reports whether the file begins with a byte order mark.
	BOM bool
}

// Next returns the line after the text, 0 if it is the end of the file. It passes over the rest of
// a line that was cut, which [Text.Rest] is about.
func (t Text) Next() int {
	if t.Cut == NotCut {
		return 0
	}
	return t.First + t.Lines
}

// Rest returns the number of bytes to skip of the line First to read the rest of it, 0 if no line
// was cut.
func (t Text) Rest() int {
	if t.Cut != CutInLine {
		return 0
	}
	return t.Skipped + len(t.Content)
}

// ReadText reads lines of a regular file of UTF-8 text. It keeps no more of the file in memory than
// it returns.
//
// In addition to the errors of [Workspace] it returns *[NotTextError] if what was read is not UTF-8
// or contains a NUL, *[LimitError] if the lines begin too far into a large file, and the context's.
func (w *Workspace) ReadText(ctx context.Context, path string, o TextOptions) (Text, error) {
	f, err := w.Open(path)
	if err != nil {
		return Text{}, err
	}
	defer f.Close()
	return f.readText(ctx, path, o)
}

// ReadText is [Workspace.ReadText] of an open file. It does not move the offset of Read.
func (f *File) ReadText(ctx context.Context, o TextOptions) (Text, error) {
	return f.readText(ctx, f.ref.Path(), o)
}

func (f *File) readText(ctx context.Context, path string, o TextOptions) (Text, error) {
	info, err := f.file.Stat()
	if err != nil {
		return Text{}, failed("read", path, err)
	}
	text, err := ReadTextFrom(ctx, f.file, info.Size(), path, o)
	text.Ref = f.ref
	return text, err
}

// ReadTextFrom is [Workspace.ReadText], but reads r instead of the file at path. size is the size
// of r's content, unless that grows. The text has no Ref.
func ReadTextFrom(
	ctx context.Context, r io.ReaderAt, size int64, path string, o TextOptions,
) (Text, error) {
	o, err := o.withDefaults(path)
	if err != nil {
		return Text{}, err
	}
	s := &textReader{path: path, o: o, line: 1,
		text: Text{First: o.First, Size: size, Total: -1}}
	from := io.NewSectionReader(r, 0, 1<<62)
	if err := s.readLines(ctx, bufio.NewReaderSize(from, textChunk)); err != nil {
		return Text{}, err
	}
	s.text.Content = string(s.kept)
	if s.partial > 0 { // the last line has no line ending
		s.text.Lines++
	}
	return s.text, nil
}

func (o TextOptions) withDefaults(path string) (TextOptions, error) {
	if o.First < 0 || o.Skip < 0 || o.MaxLines < 0 || o.MaxBytes < 0 || o.MaxWhole < 0 {
		return o, failed("read", path, errors.New("a number in the options is negative"))
	}
	o.First = cmp.Or(o.First, 1)
	o.MaxLines = cmp.Or(o.MaxLines, defaultMaxLines)
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxText)
	o.MaxWhole = cmp.Or(o.MaxWhole, defaultMaxWhole)
	o.maxSkipped = cmp.Or(o.maxSkipped, defaultMaxSkipped)
	return o, nil
}

// textChunk is the most bytes of a line that are read at once.
const textChunk = 64 << 10

// boms are the byte order marks of other encodings. The mark of UTF-32LE begins like the mark of
// UTF-16LE, so the longer ones are first.
var boms = []struct{ mark, encoding string }{
	{bomUTF32, "UTF-32"},
	{"\x00\x00\xfe\xff", "UTF-32"},
	{"\xff\xfe", "UTF-16"},
	{"\xfe\xff", "UTF-16"},
}

const bomUTF8, bomUTF32 = "\xef\xbb\xbf", "\xff\xfe\x00\x00"

// textReader collects lines of a file that is read in parts.
type textReader struct {
	path string
	o    TextOptions

	text    Text   // without its content; a line without an end is not counted
	kept    []byte // the lines to return
	partial int    // bytes of the current line that are in kept
	line    int    // number of the current line
	open    bool   // whether the current line has any bytes
}

// readLines reads as far as necessary. A file that grows while it is read is treated like a large
// one.
func (s *textReader) readLines(ctx context.Context, r *bufio.Reader) (err error) {
	start, _ := r.Peek(len(bomUTF32))
	if s.text.BOM, err = checkMark(s.path, start); err != nil {
		return err
	}
	if s.text.BOM {
		_, _ = r.Discard(len(bomUTF8))
	}
	var rest []byte // the beginning of a character that the last part cut in two
	isWhole := func(read int64) bool { return max(read, s.text.Size) <= s.o.MaxWhole }
	for read := int64(0); s.text.Cut == NotCut || isWhole(read); {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case read > s.o.maxSkipped:
			return &LimitError{Path: s.path, What: "bytes to read to get to the lines",
				Limit: s.o.maxSkipped}
		}
		part, err := r.ReadSlice('\n')
		ended := err == io.EOF
		if err != nil && !ended && err != bufio.ErrBufferFull {
			return failed("read", s.path, err)
		}
		read += int64(len(part))
		if len(rest) > 0 {
			part, rest = append(rest, part...), nil
		}
		if !ended {
			end := lastRune(part)
			part, rest = part[:end], bytes.Clone(part[end:])
		}
		if err := checkText(s.path, part, s.line); err != nil {
			return err
		}
		s.keep(part)
		if ended {
			s.text.Total = s.line - 1
			if s.open {
				s.text.Total++
			}
			return nil
		}
	}
	return nil
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

// lastRune returns where an incomplete character at the end of part begins, or the length of part.
func lastRune(part []byte) int {
	for i := len(part) - 1; i >= 0 && i > len(part)-utf8.UTFMax; i-- {
		if utf8.RuneStart(part[i]) {
			if !utf8.FullRune(part[i:]) {
				return i
			}
			break
		}
	}
	return len(part)
}

// CheckText returns a *[NotTextError] if the content of the file at path is not UTF-8 or contains a
// NUL.
func CheckText(path string, content []byte) error { return checkText(path, content, 1) }

// checkText is CheckText for a part of a file, which begins in a line.
func checkText(path string, part []byte, line int) error {
	for one := range bytes.Lines(part) {
		switch {
		case bytes.IndexByte(one, 0) >= 0:
			return &NotTextError{Path: path, Kind: "binary", Line: line}
		case !utf8.Valid(one):
			return &NotTextError{Path: path, Kind: "not UTF-8", Line: line}
		}
		line++
	}
	return nil
}

// keep takes a part of the current line, and adds it to kept if it is to be returned.
func (s *textReader) keep(part []byte) {
	if len(part) == 0 {
		return
	}
	ended := part[len(part)-1] == '\n'
	if s.line == s.o.First {
		part = s.skip(part)
	}
	if s.line >= s.o.First && s.text.Cut == NotCut && len(part) > 0 {
		switch room := s.o.MaxBytes - len(s.kept); {
		case s.text.Lines == s.o.MaxLines:
			s.text.Cut = CutByLines
		case len(part) <= room:
			s.kept = append(s.kept, part...)
			s.partial += len(part)
		case s.text.Lines > 0: // return whole lines
			s.kept = s.kept[:len(s.kept)-s.partial]
			s.partial, s.text.Cut = 0, CutByBytes
		default:
			for room > 0 && !utf8.RuneStart(part[room]) {
				room--
			}
			s.kept = append(s.kept, part[:room]...)
			s.text.Lines, s.partial, s.text.Cut = 1, 0, CutInLine
		}
		if ended && s.text.Cut == NotCut {
			s.text.Lines, s.partial = s.text.Lines+1, 0
		}
	}
	s.open = !ended
	if ended {
		s.line++
	}
}

// skip returns what is left of a part of the first line.
func (s *textReader) skip(part []byte) []byte {
	n := min(s.o.Skip-s.text.Skipped, len(bytes.TrimSuffix(part, []byte("\n"))))
	for n > 0 && n < len(part) && !utf8.RuneStart(part[n]) {
		n++
	}
	s.text.Skipped += max(n, 0)
	return part[max(n, 0):]
}

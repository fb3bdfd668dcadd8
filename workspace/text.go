package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
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
	// MaxBytes is the maximum number of bytes to return. Zero means
	// 256 KiB.
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
	s := newTextReader(path, o, size)
	if err := s.readLines(ctx, io.NewSectionReader(r, 0, 1<<62)); err != nil {
		return Text{}, err
	}
	text := s.text()
	text.Size = size
	return text, nil
}

var errNegative = errors.New("a number in the options is negative")

func (o TextOptions) withDefaults(path string) (TextOptions, error) {
	if o.First < 0 || o.Skip < 0 || o.MaxLines < 0 || o.MaxBytes < 0 || o.MaxWhole < 0 {
		return o, failed("read", path, errNegative)
	}
	o.First = cmp.Or(o.First, 1)
	o.MaxLines = cmp.Or(o.MaxLines, defaultMaxLines)
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxText)
	o.MaxWhole = cmp.Or(o.MaxWhole, defaultMaxWhole)
	o.maxSkipped = cmp.Or(o.maxSkipped, defaultMaxSkipped)
	return o, nil
}

// textChunk is how many bytes are read between two checks of the context.
const textChunk = 64 << 10

// boms are the byte order marks of other encodings. The mark of UTF-32LE begins like the mark of
// UTF-16LE, so the longer ones are first.
var boms = []struct{ mark, encoding string }{
	{"\xff\xfe\x00\x00", "UTF-32"},
	{"\x00\x00\xfe\xff", "UTF-32"},
	{"\xff\xfe", "UTF-16"},
	{"\xfe\xff", "UTF-16"},
}

const bomUTF8 = "\xef\xbb\xbf"

// textReader collects lines of a file that is read in parts.
type textReader struct {
	path  string
	o     TextOptions
	whole bool // whether to read to the end

	kept    []byte // the lines to return
	skipped int    // bytes of the first of them that are left out
	lines   int    // complete lines in kept
	cut     Cut
	bom     bool
	read    int64  // bytes so far
	line    int    // number of the current line
	partial int    // bytes of it that are in kept
	open    bool   // whether the current line has any bytes
	rest    []byte // the beginning of a character that the last part cut in two
	ended   bool   // whether everything to the end of the file was checked
}

func newTextReader(path string, o TextOptions, size int64) *textReader {
	return &textReader{path: path, o: o, whole: size <= o.MaxWhole, line: 1}
}

// readLines reads as far as necessary.
func (s *textReader) readLines(ctx context.Context, r io.Reader) error {
	buffer := make([]byte, utf8.UTFMax+textChunk)
	for !s.done() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		left := copy(buffer, s.rest)
		n, err := io.ReadFull(r, buffer[left:left+textChunk])
		s.ended = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !s.ended {
			return failed("read", s.path, err)
		}
		if err := s.take(buffer[:left+n]); err != nil {
			return err
		}
		s.read += int64(n)
		if err := s.checkBounds(); err != nil {
			return err
		}
	}
	return nil
}

// done reports whether nothing more needs to be read.
func (s *textReader) done() bool {
	return s.ended || s.cut != NotCut && !s.whole
}

// checkBounds fails if too much was read. A file that grows while it is read is treated like a
// large one.
func (s *textReader) checkBounds() error {
	if s.read > s.o.MaxWhole {
		s.whole = false
	}
	if !s.done() && s.read >= s.o.maxSkipped {
		return &LimitError{Path: s.path, What: "bytes to read to get to the lines",
			Limit: s.o.maxSkipped}
	}
	return nil
}

// take processes a part of the file, which begins with rest.
func (s *textReader) take(part []byte) error {
	if s.read == 0 {
		var err error
		if s.bom, err = checkMark(s.path, part); err != nil {
			return err
		}
		part = bytes.TrimPrefix(part, []byte(bomUTF8))
	}
	s.rest = nil
	if !s.ended {
		if cut := lastRune(part); cut < len(part) {
			part, s.rest = part[:cut], bytes.Clone(part[cut:])
		}
	}
	if s.cut != NotCut && len(part) > 0 && s.check(part) == nil { // only lines are left to count
		s.line += bytes.Count(part, []byte("\n"))
		s.open = part[len(part)-1] != '\n'
		return nil
	}
	for len(part) > 0 && (s.cut == NotCut || s.whole) {
		line := part
		if end := bytes.IndexByte(part, '\n'); end >= 0 {
			line = part[:end+1]
		}
		part = part[len(line):]
		if err := s.check(line); err != nil {
			return err
		}
		s.keep(line)
	}
	if len(part) > 0 { // the rest was not checked
		s.ended = false
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

func (s *textReader) check(line []byte) error {
	switch {
	case bytes.IndexByte(line, 0) >= 0:
		return &NotTextError{Path: s.path, Line: s.line, Kind: "binary"}
	case !utf8.Valid(line):
		return &NotTextError{Path: s.path, Line: s.line, Kind: "not UTF-8"}
	default:
		return nil
	}
}

// keep adds a part of the current line to kept, if it is to be returned.
func (s *textReader) keep(part []byte) {
	ended := part[len(part)-1] == '\n'
	if s.line == s.o.First {
		part = s.skip(part)
	}
	if s.line >= s.o.First && s.cut == NotCut && len(part) > 0 {
		switch room := s.o.MaxBytes - len(s.kept); {
		case s.lines == s.o.MaxLines:
			s.cut = CutByLines
		case len(part) <= room:
			s.kept = append(s.kept, part...)
			s.partial += len(part)
		case s.lines > 0: // return whole lines
			s.kept = s.kept[:len(s.kept)-s.partial]
			s.partial, s.cut = 0, CutByBytes
		default:
			for room > 0 && !utf8.RuneStart(part[room]) {
				room--
			}
			s.kept = append(s.kept, part[:room]...)
			s.lines, s.partial, s.cut = 1, 0, CutInLine
		}
		if ended && s.cut == NotCut {
			s.lines, s.partial = s.lines+1, 0
		}
	}
	s.open = !ended
	if ended && s.line < math.MaxInt {
		s.line++
	}
}

// skip returns what is left of a part of the first line.
func (s *textReader) skip(part []byte) []byte {
	n := min(s.o.Skip-s.skipped, len(bytes.TrimSuffix(part, []byte("\n"))))
	for n > 0 && n < len(part) && !utf8.RuneStart(part[n]) {
		n++
	}
	s.skipped += max(n, 0)
	return part[max(n, 0):]
}

// text returns the result.
func (s *textReader) text() Text {
	t := Text{Content: string(s.kept), First: s.o.First, Lines: s.lines, Skipped: s.skipped,
		Cut: s.cut, Total: -1, BOM: s.bom}
	if s.partial > 0 { // the last line has no line ending
		t.Lines++
	}
	if s.ended {
		t.Total = s.line - 1
		if s.open {
			t.Total++
		}
	}
	return t
}

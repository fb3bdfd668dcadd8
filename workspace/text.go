package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"math"
	"unicode/utf8"
)

// What [TextOptions] are where they name no other number.
const (
	DefaultMaxLines = 2000
	DefaultMaxText  = 256 << 10
	DefaultMaxWhole = 16 << 20
	DefaultMaxScan  = 1 << 30
)

// TextOptions configure [Workspace.ReadText]. A zero number is its default, one below zero an error.
type TextOptions struct {
	// First is the line to begin with, counted from 1. Default 1.
	First int
	// MaxLines is the most lines that are returned. Default [DefaultMaxLines].
	MaxLines int
	// MaxBytes is the most bytes that are returned. Default [DefaultMaxText].
	MaxBytes int
	// MaxWhole is the size, in bytes, up to which a file is read to its end, whatever lines are asked for,
	// so that all of it is checked, counted and part of the version. Default [DefaultMaxWhole].
	MaxWhole int64
	// MaxScan is the most bytes of a larger file that are read to get at the lines. If they end further
	// on, the error is a *[LimitError]. Default [DefaultMaxScan].
	MaxScan int64
}

// Cut says what ended a [Text] before its file did.
type Cut string

// The reasons why a text is cut.
const (
	// NotCut: the text goes to the end of the file.
	NotCut Cut = ""
	// CutByLines: there are more lines than MaxLines.
	CutByLines Cut = "lines"
	// CutByBytes: the next line does not fit into MaxBytes.
	CutByBytes Cut = "bytes"
	// CutInLine: a single line does not fit into MaxBytes; the text is its beginning.
	CutInLine Cut = "line"
)

// Text is lines of a file.
type Text struct {
	// Ref is where the file was when it was read.
	Ref Ref
	// Content are the lines with their ends ("\n", "\r\n") as they are in the file: valid UTF-8, without
	// a byte order mark at its beginning.
	Content string
	// First is the number of the first line of Content, counted from 1, and Lines is how many it has; 0 if the
	// file ends before First. A line that is cut counts.
	First, Lines int
	// Cut says why Content ends before the file does.
	Cut Cut
	// Total is the number of lines of the file, -1 if it was not read to its end.
	Total int
	// Size is that of the file in bytes, when it was opened.
	Size int64
	// BOM reports whether the file begins with a byte order mark.
	BOM bool
	// Version is that of the file, for [WriteOptions].IfUnchanged: of its content if it was read to its
	// end, else of what the system says about it (see [Version]).
	Version Version
}

// Next is the line after the last one of the text, to read on from; 0 if there is none. What follows the
// beginning of a line that was cut is not to be had by lines.
func (t Text) Next() int {
	if t.Cut == NotCut {
		return 0
	}
	return t.First + t.Lines
}

// ReadText reads lines of a regular file of UTF-8 text. A line ends with "\n", or with the file. It
// holds no more of the file than it returns, and says what it left out.
//
// Besides those of [Workspace], errors are *[NotTextError] for a file that is not UTF-8 or has a NUL in what
// was read of it, *[LimitError], and the context's.
func (w *Workspace) ReadText(ctx context.Context, path string, o TextOptions) (Text, error) {
	f, err := w.Open(path)
	if err != nil {
		return Text{}, err
	}
	defer f.Close()
	return f.readText(ctx, path, o)
}

// ReadText is [Workspace.ReadText] of an open file. It reads from the file's beginning, wherever the
// next Read would, and leaves that where it is.
func (f *File) ReadText(ctx context.Context, o TextOptions) (Text, error) {
	return f.readText(ctx, f.ref.Path(), o)
}

func (f *File) readText(ctx context.Context, path string, o TextOptions) (Text, error) {
	o, err := o.complete(path)
	if err != nil {
		return Text{}, err
	}
	info, err := f.file.Stat()
	if err != nil {
		return Text{}, failed("read", path, err)
	}
	s := newTextScan(path, o, info.Size())
	err = s.scan(ctx, io.NewSectionReader(f.file, 0, 1<<62))
	if err != nil {
		return Text{}, err
	}
	text := s.text()
	text.Ref, text.Size = f.ref, info.Size()
	if text.Total >= 0 {
		text.Version = s.version()
	} else if text.Version, err = versionOfFile(f.file); err != nil {
		return Text{}, failed("read", path, err)
	}
	return text, nil
}

var errNegative = errors.New("a number in the options is negative")

func (o TextOptions) complete(path string) (TextOptions, error) {
	if o.First < 0 || o.MaxLines < 0 || o.MaxBytes < 0 || o.MaxWhole < 0 || o.MaxScan < 0 {
		return o, failed("read", path, errNegative)
	}
	setDefault(&o.First, 1)
	setDefault(&o.MaxLines, DefaultMaxLines)
	setDefault(&o.MaxBytes, DefaultMaxText)
	setDefault(&o.MaxWhole, DefaultMaxWhole)
	setDefault(&o.MaxScan, DefaultMaxScan)
	return o, nil
}

// setDefault gives an option that is zero its default.
func setDefault[N int | int64 | fs.FileMode](n *N, value N) {
	if *n == 0 {
		*n = value
	}
}

// scannedAtOnce is how many bytes are read between two looks at the context.
const scannedAtOnce = 64 << 10

// The byte order marks, the longest first: that of UTF-32LE begins like that of UTF-16LE.
var boms = []struct{ mark, encoding string }{
	{"\xff\xfe\x00\x00", "UTF-32"},
	{"\x00\x00\xfe\xff", "UTF-32"},
	{"\xff\xfe", "UTF-16"},
	{"\xfe\xff", "UTF-16"},
}

const bomUTF8 = "\xef\xbb\xbf"

// textScan takes lines out of a file as it is read, part by part.
type textScan struct {
	path  string
	o     TextOptions
	whole bool // whether to read to the end
	hash  hash.Hash

	kept    []byte // the lines, all before the one that is being read
	lines   int    // in kept
	cut     Cut
	bom     bool
	read    int64  // bytes so far
	line    int    // number of the line that is being read
	partial int    // bytes of it that are in kept
	open    bool   // whether that line has any bytes
	rest    []byte // the beginning of a character
	ended   bool   // whether the file was read and looked at to its end
}

func newTextScan(path string, o TextOptions, size int64) *textScan {
	return &textScan{path: path, o: o, whole: size <= o.MaxWhole, hash: sha256.New(), line: 1}
}

// scan reads as far as it must.
func (s *textScan) scan(ctx context.Context, r io.Reader) error {
	buffer := make([]byte, utf8.UTFMax+scannedAtOnce)
	for !s.done() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// What was left of a character that the last part cut in two comes first.
		left := copy(buffer, s.rest)
		n, err := io.ReadFull(r, buffer[left:left+scannedAtOnce])
		s.ended = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !s.ended {
			return failed("read", s.path, err)
		}
		s.hash.Write(buffer[left : left+n])
		if err := s.take(buffer[:left+n]); err != nil {
			return err
		}
		s.read += int64(n)
		if err := s.bounded(); err != nil {
			return err
		}
	}
	return nil
}

// done reports whether nothing more is to be read.
func (s *textScan) done() bool {
	return s.ended || s.cut != NotCut && !s.whole
}

// bounded fails if too much was read. A file that grows while it is read is as one that was large before.
func (s *textScan) bounded() error {
	if s.read > s.o.MaxWhole {
		s.whole = false
	}
	if !s.done() && s.read >= s.o.MaxScan {
		return &LimitError{Path: s.path, What: "bytes to read to get at the lines", Limit: s.o.MaxScan}
	}
	return nil
}

// take looks at a part of the file, which begins with what was left of the last one.
func (s *textScan) take(part []byte) error {
	if s.read == 0 {
		for _, bom := range boms {
			if bytes.HasPrefix(part, []byte(bom.mark)) {
				return &NotTextError{Path: s.path, Line: 1, Kind: bom.encoding}
			}
		}
		part, s.bom = bytes.CutPrefix(part, []byte(bomUTF8))
	}
	s.rest = nil
	if !s.ended {
		if cut := lastRune(part); cut < len(part) {
			part, s.rest = part[:cut], bytes.Clone(part[cut:])
		}
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
	if len(part) > 0 { // what is left was not looked at
		s.ended = false
	}
	return nil
}

// lastRune is where the last character of part begins if it is not all there; else the part's length.
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

func (s *textScan) check(line []byte) error {
	switch {
	case bytes.IndexByte(line, 0) >= 0:
		return &NotTextError{Path: s.path, Line: s.line, Kind: "binary"}
	case !utf8.Valid(line):
		return &NotTextError{Path: s.path, Line: s.line, Kind: "not UTF-8"}
	default:
		return nil
	}
}

// keep adds a part of the current line to what is returned, if it belongs there.
func (s *textScan) keep(part []byte) {
	ended := part[len(part)-1] == '\n'
	if s.line >= s.o.First && s.cut == NotCut {
		switch room := s.o.MaxBytes - len(s.kept); {
		case s.lines == s.o.MaxLines:
			s.cut = CutByLines
		case len(part) <= room:
			s.kept = append(s.kept, part...)
			s.partial += len(part)
		case s.lines > 0: // lines are returned as a whole
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

// text is what was found.
func (s *textScan) text() Text {
	t := Text{Content: string(s.kept), First: s.o.First, Lines: s.lines, Cut: s.cut, Total: -1, BOM: s.bom}
	if s.partial > 0 { // the last line of the file, which has no end
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

func (s *textScan) version() Version {
	return Version{size: s.read, sum: [sha256.Size]byte(s.hash.Sum(nil))}
}

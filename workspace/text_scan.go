package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"math"
	"unicode/utf8"
)

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

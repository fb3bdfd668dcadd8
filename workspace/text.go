package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
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

package tools

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/workspace"
)

// partSize is the number of bytes that are read at once of a file that is searched in parts.
const partSize = 64 << 10

// parts searches a file in parts, because it is too large to be held in memory.
type parts struct {
	*query
	file    *workspace.File
	buffers *buffers // for the matches

	// text is a part of the file, which begins with a line. It is searched up to the line at begin,
	// whose number is line. The lines before are the context of matches to come.
	text        []byte
	begin, line int
	ended       bool // whether the file ends with text

	found []line // so far
	size  int    // of their texts
	count int    // of matches
}

// searchParts returns the matching lines of a file. The text of b is its beginning, up to the
// offset of file. The error is errLarge if a line and its context do not fit into memory either, or
// if a matching part is not UTF-8.
func (q *query) searchParts(ctx context.Context, b *buffers, file *workspace.File) ([]line, error) {
	text := bytes.TrimPrefix(b.text, []byte(bom))
	if markOf(text) != utf8Text {
		return nil, errLarge
	}
	p := parts{query: q, buffers: b, file: file, text: text, line: 1}
	defer func() { b.text = p.text }()
	for {
		from := p.begin
		if err := p.search(ctx); err != nil {
			return nil, err
		}
		if p.ended || p.count >= q.maxHits() || p.size > q.bytes {
			return p.found, nil
		}
		if p.begin == from && int64(len(p.text)) > q.fileSize {
			return nil, errLarge
		}
		if err := p.read(); err != nil {
			return nil, err
		}
	}
}

// read reads more text, and drops what is no longer needed.
func (p *parts) read() error {
	keep := linesBefore(p.text, p.begin, p.context)
	p.text = append(p.text[:0], p.text[keep:]...)
	p.begin -= keep
	length := len(p.text)
	p.text = slices.Grow(p.text, partSize)[:length+partSize]
	n, err := io.ReadFull(p.file, p.text[length:])
	p.text = p.text[:length+n]
	if p.ended = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); p.ended {
		err = nil
	}
	return err
}

// search searches the lines of text that are complete, and whose context is.
func (p *parts) search(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	text, end := p.text, len(p.text)
	if !p.ended {
		text = text[:bytes.LastIndexByte(text, '\n')+1]
		end = linesBefore(text, len(text), p.context)
	}
	if end <= p.begin {
		return nil
	}
	hits, err := p.matches(ctx, text[p.begin:end], p.buffers)
	if errors.Is(err, errBinary) || len(hits) > 0 && !utf8.Valid(text) {
		err = errLarge // the encoding of a part cannot be known
	}
	if err != nil {
		return err
	}
	hits = hits[:min(len(hits), p.maxHits()-p.count)]
	for i := range hits {
		hits[i].number += p.line - 1
		hits[i].start += p.begin
		hits[i].end += p.begin
	}
	p.count += len(hits)
	p.add(p.lines(text, hits))
	p.line += bytes.Count(text[p.begin:end], []byte("\n"))
	p.begin = end
	return nil
}

// add adds lines to those found. The first may have been found before, as context.
func (p *parts) add(lines []line) {
	for _, l := range lines {
		i, known := slices.BinarySearchFunc(p.found, l,
			func(a, b line) int { return a.number - b.number })
		switch {
		case !known:
			p.found = append(p.found, l)
			p.size += len(l.text)
		case l.match:
			p.found[i] = l
		}
	}
}

// linesBefore returns where the line begins that is n lines before the line at offset.
func linesBefore(text []byte, offset, n int) int {
	for ; n > 0 && offset > 0; n-- {
		offset = bytes.LastIndexByte(text[:offset-1], '\n') + 1
	}
	return offset
}

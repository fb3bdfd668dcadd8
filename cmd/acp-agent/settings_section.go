package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// sectionReader reads a value of the configuration file that is an object of its own, strictly. It knows the lines.
type sectionReader struct {
	path    string
	first   int // the line that the value begins on
	text    []byte
	decoder *json.Decoder
}

func newSection(path string, first int, text []byte) *sectionReader {
	return &sectionReader{path: path, first: first, text: text, decoder: json.NewDecoder(bytes.NewReader(text))}
}

func (r *sectionReader) line() int {
	return r.first + bytes.Count(r.text[:r.decoder.InputOffset()], []byte("\n"))
}

func (r *sectionReader) fail(format string, args ...any) error {
	return usagef("%s:%d: %s", r.path, r.line(), fmt.Sprintf(format, args...))
}

// object reads an object, whose members each reads the value of.
func (r *sectionReader) object(what string, each func(name string) error) error {
	if token, err := r.decoder.Token(); err != nil || token != json.Delim('{') {
		return r.fail("%q needs an object", what)
	}
	seen := make(map[string]bool)
	for r.decoder.More() {
		token, err := r.decoder.Token()
		if err != nil {
			return r.fail("%v", err)
		}
		name, _ := token.(string)
		if seen[name] {
			return r.fail("%q is given twice", name)
		}
		seen[name] = true
		if err := each(name); err != nil {
			return err
		}
	}
	if _, err := r.decoder.Token(); err != nil && err != io.EOF {
		return r.fail("%v", err)
	}
	return nil
}

// word reads a string.
func (r *sectionReader) word(name string) (string, error) {
	token, err := r.decoder.Token()
	word, is := token.(string)
	if err != nil || !is {
		return "", r.fail("%q needs a string", name)
	}
	return word, nil
}

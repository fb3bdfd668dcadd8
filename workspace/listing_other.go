//go:build !linux

package workspace

import (
	"context"
	"errors"
	"io"
)

// listingBuffer is what a listing needs; the standard library has its own.
const listingBuffer = 0

// entriesAtOnce is how many entries are read between two looks at the context.
const entriesAtOnce = 1024

// intoToList is into for a directory that will be listed.
func (h *handle) intoToList(name string) (*handle, error) { return h.into(name) }

// list is what is in the directory, in no order: limit entries and one more if there are more.
func (h *handle) list(ctx context.Context, limit int, _ []byte) ([]Entry, error) {
	self, err := h.Open(".")
	if err != nil {
		return nil, err
	}
	defer self.Close()
	var entries []Entry
	for len(entries) <= limit && ctx.Err() == nil {
		some, err := self.ReadDir(entriesAtOnce)
		for _, e := range some {
			entries = append(entries, Entry{e.Name(), e.Type()})
		}
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return entries, err
		}
	}
	return entries, nil
}

package workspace

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// listingBuffer is how many bytes of a directory are read at once.
const listingBuffer = 32 << 10

// intoToList is into for a directory that will be listed. One that may be entered, but not be read, is
// opened all the same.
func (h *handle) intoToList(name string) (*handle, error) {
	got, seen, err := h.open(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if errors.Is(err, unix.EACCES) {
		return h.into(name)
	}
	if err != nil {
		return nil, err
	}
	child := h.child(got, seen)
	child.unread.Store(true)
	return child, nil
}

// list is what is in the directory, in no order: limit entries and one more if there are more.
func (h *handle) list(ctx context.Context, limit int, buf []byte) ([]Entry, error) {
	if !h.unread.CompareAndSwap(true, false) { // a descriptor reads a directory once
		again, seen, err := h.open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return nil, err
		}
		h = h.child(again, seen)
		defer h.Close()
	}
	var entries []Entry
	for len(entries) <= limit && ctx.Err() == nil {
		var n int
		err := h.do(".", func(fd int) (err error) {
			n, err = unix.Getdents(fd, buf)
			return err
		})
		if n <= 0 || err != nil {
			return entries, named("getdents", ".", err)
		}
		if entries, err = h.parse(entries, string(buf[:n])); err != nil {
			return entries, err
		}
	}
	return entries, nil
}

// parse adds the entries of what the system says of a directory. Their names share its memory.
func (h *handle) parse(entries []Entry, text string) ([]Entry, error) {
	const (
		size   = int(unsafe.Offsetof(unix.Dirent{}.Reclen))
		kind   = int(unsafe.Offsetof(unix.Dirent{}.Type))
		header = int(unsafe.Offsetof(unix.Dirent{}.Name))
	)
	for len(text) > header {
		length := int(binary.NativeEndian.Uint16([]byte{text[size], text[size+1]}))
		if length <= header || length > len(text) {
			return entries, unix.EIO
		}
		name, _, _ := strings.Cut(text[header:length], "\x00")
		if name != "." && inside(name) {
			if e, err := h.entry(name, text[kind]); err == nil {
				entries = append(entries, e)
			}
		}
		text = text[length:]
	}
	return entries, nil
}

// entry is the entry name, of a type that the directory knows, or else is looked up.
func (h *handle) entry(name string, kind byte) (Entry, error) {
	if kind != unix.DT_UNKNOWN {
		return Entry{name, kindBits(uint32(kind) << 12)}, nil
	}
	seen, err := h.look(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Entry{}, err
	case err != nil:
		return Entry{name, fs.ModeIrregular}, nil
	default:
		return Entry{name, seen.kind}, nil
	}
}

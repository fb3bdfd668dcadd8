package sqlite_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// deed is one thing that was done to the files of a store, in the order in which it was done.
type deed struct {
	kind deedKind
	file int    // which file, whatever its name is: a name that is made anew is another file
	name string // of deedName and deedUnname
	at   int64  // of deedWrite the offset, of deedCut the new length
	data []byte // of deedWrite
}

type deedKind int

const (
	deedName   deedKind = iota // the file got its name
	deedUnname                 // and lost it
	deedWrite
	deedCut
	deedSync      // the file is on the disk, with the names so far
	deedSyncNames // the names are
	deedAnswer    // the store has answered its caller once more
)

// recorder is SQLite's access to the operating system (its VFS), which does everything as always, and writes
// down what changes the files of a directory.
type recorder struct {
	dir  string
	real sqlite3.Tsqlite3_vfs
	// room is how many writes the disk has room for, or less than none for any number.
	room atomic.Int64
	// calls keeps the functions alive of which SQLite has the addresses, blocks are the memory that it was given.
	calls  []any
	blocks []uintptr

	mu      sync.Mutex
	deeds   []deed
	files   int
	names   map[string]int
	open    map[uintptr]int
	methods map[uintptr]uintptr // ours, by those they stand for
}

type (
	openCall   = func(tls *libc.TLS, vfs, path, file uintptr, flags int32, outFlags uintptr) int32
	deleteCall = func(tls *libc.TLS, vfs, path uintptr, sync int32) int32
	closeCall  = func(tls *libc.TLS, file uintptr) int32
	writeCall  = func(tls *libc.TLS, file, data uintptr, n int32, offset int64) int32
	cutCall    = func(tls *libc.TLS, file uintptr, length int64) int32
	syncCall   = func(tls *libc.TLS, file uintptr, flags int32) int32
)

// record makes the stores that are opened before stop is called go through a recorder of dir. They are closed
// before that.
func record(t *testing.T, dir string) (r *recorder, stop func()) {
	t.Helper()
	tls := libc.NewTLS()
	r = &recorder{dir: dir, names: map[string]int{}, open: map[uintptr]int{}, methods: map[uintptr]uintptr{}}
	r.room.Store(-1)
	r.real = *at[sqlite3.Tsqlite3_vfs](sqlite3.Xsqlite3_vfs_find(tls, 0))
	name, err := libc.CString("recorder")
	require.NoError(t, err)
	ours := r.real
	ours.FzName, ours.FpNext = name, 0
	ours.FxOpen = hook[openCall](r, r.opened)
	ours.FxDelete = hook[deleteCall](r, r.deleted)
	vfs := lend(tls, r, ours)
	require.Zero(t, sqlite3.Xsqlite3_vfs_register(tls, vfs, 1))
	return r, func() {
		require.Zero(t, sqlite3.Xsqlite3_vfs_unregister(tls, vfs))
		require.Empty(t, r.open)
		for _, block := range append(r.blocks, name) {
			libc.Xfree(tls, block)
		}
		tls.Close()
	}
}

func (r *recorder) opened(tls *libc.TLS, vfs, path, file uintptr, flags int32, outFlags uintptr) int32 {
	code := call[openCall](r.real.FxOpen)(tls, vfs, path, file, flags, outFlags)
	if code != 0 || path == 0 || filepath.Dir(libc.GoString(path)) != r.dir {
		return code
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name := filepath.Base(libc.GoString(path))
	if _, known := r.names[name]; !known {
		r.files++
		r.names[name] = r.files
		r.deeds = append(r.deeds, deed{kind: deedName, file: r.files, name: name})
	}
	r.open[file] = r.names[name]
	methods := &at[sqlite3.Tsqlite3_file](file).FpMethods
	if r.methods[*methods] == 0 {
		r.methods[*methods] = lend(tls, r, r.recording(*at[sqlite3.Tsqlite3_io_methods](*methods)))
	}
	*methods = r.methods[*methods]
	return code
}

// recording are the methods of a file, with those that change it wrapped.
func (r *recorder) recording(real sqlite3.Tsqlite3_io_methods) sqlite3.Tsqlite3_io_methods {
	ours := real
	ours.FxClose = hook[closeCall](r, func(tls *libc.TLS, file uintptr) int32 {
		r.mu.Lock()
		delete(r.open, file)
		r.mu.Unlock()
		return call[closeCall](real.FxClose)(tls, file)
	})
	ours.FxWrite = hook[writeCall](r, func(tls *libc.TLS, file, data uintptr, n int32, offset int64) int32 {
		if !r.fits() {
			return sqlite3.SQLITE_FULL
		}
		r.did(file, deed{kind: deedWrite, at: offset, data: bytes.Clone(unsafe.Slice(at[byte](data), n))})
		return call[writeCall](real.FxWrite)(tls, file, data, n, offset)
	})
	ours.FxTruncate = hook[cutCall](r, func(tls *libc.TLS, file uintptr, length int64) int32 {
		r.did(file, deed{kind: deedCut, at: length})
		return call[cutCall](real.FxTruncate)(tls, file, length)
	})
	ours.FxSync = hook[syncCall](r, func(tls *libc.TLS, file uintptr, flags int32) int32 {
		code := call[syncCall](real.FxSync)(tls, file, flags)
		r.did(file, deed{kind: deedSync})
		return code
	})
	return ours
}

func (r *recorder) deleted(tls *libc.TLS, vfs, path uintptr, sync int32) int32 {
	code := call[deleteCall](r.real.FxDelete)(tls, vfs, path, sync)
	if code != 0 || filepath.Dir(libc.GoString(path)) != r.dir {
		return code
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name := filepath.Base(libc.GoString(path))
	r.deeds = append(r.deeds, deed{kind: deedUnname, file: r.names[name], name: name})
	delete(r.names, name)
	if sync != 0 {
		r.deeds = append(r.deeds, deed{kind: deedSyncNames})
	}
	return code
}

// fits takes the room for one write, if there is any.
func (r *recorder) fits() bool {
	for {
		left := r.room.Load()
		if left <= 0 {
			return left < 0
		}
		if r.room.CompareAndSwap(left, left-1) {
			return true
		}
	}
}

func (r *recorder) did(file uintptr, d deed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d.file = r.open[file]
	r.deeds = append(r.deeds, d)
}

// answered notes that a call of the store has returned.
func (r *recorder) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deeds = append(r.deeds, deed{kind: deedAnswer})
}

// recorded is what was done so far.
func (r *recorder) recorded() []deed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.deeds)
}

// What follows is how the driver, which is SQLite's C code as Go, is spoken to: structs and functions are addresses.

func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

func call[F any](address uintptr) F { return *(*F)(unsafe.Pointer(&address)) }

// hook is the address of f.
func hook[F any](r *recorder, f F) uintptr {
	r.calls = append(r.calls, f)
	return *(*uintptr)(unsafe.Pointer(&f))
}

// lend copies value to memory of the driver.
func lend[T any](tls *libc.TLS, r *recorder, value T) uintptr {
	block := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(value)))
	*at[T](block) = value
	r.blocks = append(r.blocks, block)
	return block
}

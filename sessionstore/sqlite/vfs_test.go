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

// fileOp is an operation on a file of a store.
type fileOp struct {
	kind opKind
	file int    // identifies the file; a name that is created again is another file
	name string // of opCreate and opDelete
	at   int64  // of opWrite the offset, of opTruncate the new length
	data []byte // of opWrite
}

type opKind int

const (
	opCreate opKind = iota
	opDelete
	opWrite
	opTruncate
	opSync    // of the file and the names so far
	opSyncDir // of the names
	opReturn  // a call of the store has returned
)

// recordingVFS is SQLite's interface to the operating system (its VFS), which also records the
// operations that change the files of a directory.
type recordingVFS struct {
	dir  string
	real sqlite3.Tsqlite3_vfs
	// room is the number of writes that fit on the disk; negative means any number.
	room atomic.Int64
	// temporary counts the temporary files that were opened.
	temporary atomic.Int64
	// calls keeps the functions alive whose addresses SQLite has. blocks is the memory that was
	// allocated for it.
	calls  []any
	blocks []uintptr

	mu      sync.Mutex
	ops     []fileOp
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

// record makes the stores that are opened until stop is called use a recordingVFS of dir. They must
// be closed before stop.
func record(t *testing.T, dir string) (r *recordingVFS, stop func()) {
	t.Helper()
	tls := libc.NewTLS()
	r = &recordingVFS{dir: dir, names: map[string]int{}, open: map[uintptr]int{}, methods: map[uintptr]uintptr{}}
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

func (r *recordingVFS) opened(
	tls *libc.TLS, vfs, path, file uintptr, flags int32, outFlags uintptr,
) int32 {
	code := call[openCall](r.real.FxOpen)(tls, vfs, path, file, flags, outFlags)
	if flags&(sqlite3.SQLITE_OPEN_TEMP_DB|sqlite3.SQLITE_OPEN_TEMP_JOURNAL|sqlite3.SQLITE_OPEN_SUBJOURNAL|sqlite3.SQLITE_OPEN_TRANSIENT_DB) != 0 {
		r.temporary.Add(1)
	}
	if code != 0 || path == 0 || filepath.Dir(libc.GoString(path)) != r.dir {
		return code
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name := filepath.Base(libc.GoString(path))
	if _, known := r.names[name]; !known {
		r.files++
		r.names[name] = r.files
		r.ops = append(r.ops, fileOp{kind: opCreate, file: r.files, name: name})
	}
	r.open[file] = r.names[name]
	methods := &at[sqlite3.Tsqlite3_file](file).FpMethods
	if r.methods[*methods] == 0 {
		r.methods[*methods] = lend(tls, r, r.recording(*at[sqlite3.Tsqlite3_io_methods](*methods)))
	}
	*methods = r.methods[*methods]
	return code
}

// recording returns the methods of a file, with those that change it wrapped.
func (r *recordingVFS) recording(real sqlite3.Tsqlite3_io_methods) sqlite3.Tsqlite3_io_methods {
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
		r.did(file, fileOp{kind: opWrite, at: offset, data: bytes.Clone(unsafe.Slice(at[byte](data), n))})
		return call[writeCall](real.FxWrite)(tls, file, data, n, offset)
	})
	ours.FxTruncate = hook[cutCall](r, func(tls *libc.TLS, file uintptr, length int64) int32 {
		r.did(file, fileOp{kind: opTruncate, at: length})
		return call[cutCall](real.FxTruncate)(tls, file, length)
	})
	ours.FxSync = hook[syncCall](r, func(tls *libc.TLS, file uintptr, flags int32) int32 {
		code := call[syncCall](real.FxSync)(tls, file, flags)
		r.did(file, fileOp{kind: opSync})
		return code
	})
	return ours
}

func (r *recordingVFS) deleted(tls *libc.TLS, vfs, path uintptr, sync int32) int32 {
	code := call[deleteCall](r.real.FxDelete)(tls, vfs, path, sync)
	if code != 0 || filepath.Dir(libc.GoString(path)) != r.dir {
		return code
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name := filepath.Base(libc.GoString(path))
	r.ops = append(r.ops, fileOp{kind: opDelete, file: r.names[name], name: name})
	delete(r.names, name)
	if sync != 0 {
		r.ops = append(r.ops, fileOp{kind: opSyncDir})
	}
	return code
}

// fits reports whether there is room for a write, and uses it.
func (r *recordingVFS) fits() bool {
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

func (r *recordingVFS) did(file uintptr, d fileOp) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d.file = r.open[file]
	r.ops = append(r.ops, d)
}

// answered records that a call of the store has returned.
func (r *recordingVFS) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, fileOp{kind: opReturn})
}

// recorded returns the operations so far.
func (r *recordingVFS) recorded() []fileOp {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ops)
}

// The driver is SQLite's C code translated to Go, in which structs and functions are addresses.

func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

func call[F any](address uintptr) F { return *(*F)(unsafe.Pointer(&address)) }

// hook returns the address of f.
func hook[F any](r *recordingVFS, f F) uintptr {
	r.calls = append(r.calls, f)
	return *(*uintptr)(unsafe.Pointer(&f))
}

// lend copies value to memory of the driver and returns its address.
func lend[T any](tls *libc.TLS, r *recordingVFS, value T) uintptr {
	block := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(value)))
	*at[T](block) = value
	r.blocks = append(r.blocks, block)
	return block
}

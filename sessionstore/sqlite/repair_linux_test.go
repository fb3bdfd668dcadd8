package sqlite_test

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// A program that found no store during a repair would create an empty one and continue with that.
//
// Clause S4.
func TestRepairReplacesAtomically(t *testing.T) {
	dir := filled(t, 3)
	damage(t, dir, func(page int) bool { return page == 5 })
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	require.NoError(t, err)
	defer unix.Close(watch)
	_, err = unix.InotifyAddWatch(watch, dir, unix.IN_MOVED_FROM|unix.IN_MOVED_TO|unix.IN_DELETE)
	require.NoError(t, err)

	report, err := sqlite.Repair(t.Context(), sqlite.Options{Dir: dir})
	require.NoError(t, err)
	require.FileExists(t, report.Damaged)
	require.Equal(t, []uint32{unix.IN_MOVED_TO}, eventsOf(t, watch, "sessions.db"), "it is replaced and never missing")
}

// eventsOf returns the events of one name.
func eventsOf(t *testing.T, watch int, name string) (masks []uint32) {
	buf := make([]byte, 64<<10)
	n, err := unix.Read(watch, buf)
	require.NoError(t, err)
	for buf = buf[:n]; len(buf) > 0; {
		event := (*unix.InotifyEvent)(unsafe.Pointer(&buf[0]))
		end := unix.SizeofInotifyEvent + int(event.Len)
		if string(bytes.TrimRight(buf[unix.SizeofInotifyEvent:end], "\x00")) == name {
			masks = append(masks, event.Mask)
		}
		buf = buf[end:]
	}
	return masks
}

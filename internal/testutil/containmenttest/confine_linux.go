package containmenttest

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Confine takes from the calling goroutine, for good, the right to write, make, move or remove anything that is not
// below dir, whoever it runs as: what it attempts elsewhere fails, even if nothing else held it. What it opened
// before for writing stays writable, and permissions and times can be set elsewhere still. The goroutine keeps its
// thread, which ends with it; goroutines that it starts are not confined.
//
// It reports whether it did: not every system can.
func Confine(dir string) bool {
	const writing = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	runtime.LockOSThread() // and never let go of: a thread that is confined is of no use to anybody else
	attributes := uint64(writing)
	rules, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes), 0)
	if errno != 0 {
		return false
	}
	defer unix.Close(int(rules))
	top, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(top)
	below := unix.LandlockPathBeneathAttr{Allowed_access: writing, Parent_fd: int32(top)}
	_, _, errno = unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, rules, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&below)), 0, 0, 0)
	if errno != 0 || unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil {
		return false
	}
	_, _, errno = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules, 0, 0)
	return errno == 0
}

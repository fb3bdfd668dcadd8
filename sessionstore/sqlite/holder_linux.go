package sqlite

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/text"
)

// lockHolder describes a process that keeps the store in dir locked, or returns "". It opens none
// of the files: closing one would end SQLite's own locks in our process. The system names no
// process for the lock of an open file description, but SQLite uses none.
func lockHolder(dir string) string {
	path := filepath.Join(dir, fileName)
	first, last := uint64(120), uint64(122) // of writers: sqlite.org/walformat.html, the locks
	var file unix.Stat_t
	if unix.Stat(path+"-shm", &file) != nil {
		first, last = 0, math.MaxUint64
		_ = unix.Stat(path, &file)
	}
	list, _ := os.ReadFile("/proc/locks")
	for line := range strings.Lines(string(list)) {
		f := strings.Fields(line)
		if len(f) != 8 || !strings.HasSuffix(f[5], fmt.Sprint(":", file.Ino)) {
			continue // such as somebody who waits
		}
		pid, _ := strconv.Atoi(f[4])
		begin, _ := strconv.ParseUint(f[6], 10, 64)
		end, err := strconv.ParseUint(f[7], 10, 64)
		if err != nil {
			end = math.MaxUint64 // it says EOF
		}
		if pid > 0 && pid != os.Getpid() && begin <= last && end >= first {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			return fmt.Sprintf("%s (process %d)",
				text.QuotedName(strings.TrimSpace(string(name))), pid)
		}
	}
	return ""
}

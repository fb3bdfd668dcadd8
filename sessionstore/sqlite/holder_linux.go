package sqlite

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/text"
)

// part is a part of a file in which a lock of another process keeps us from writing.
type part struct{ inode, first, last uint64 }

// lockHolder describes a process that keeps the store in dir locked, or returns "". It opens none of
// the files: closing one would end SQLite's own locks in our process.
func lockHolder(dir string) string {
	const firstOfWriters, lastOfWriters = 120, 122 // sqlite.org/walformat.html, the locks
	path := filepath.Join(dir, fileName)
	parts := []part{{inodeOf(path + "-shm"), firstOfWriters, lastOfWriters}}
	if parts[0].inode == 0 {
		parts = append(parts, part{inodeOf(path), 0, math.MaxUint64})
	}
	list, _ := os.ReadFile("/proc/locks")
	if pid := holderIn(list, parts); pid > 0 {
		return describe(pid)
	}
	// The list does not say whose a lock is that belongs to an open file.
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, file := range files {
		target, err := os.Readlink(file)
		if err != nil || !strings.HasPrefix(filepath.Base(target), fileName) {
			continue
		}
		process, number := filepath.Dir(filepath.Dir(file)), filepath.Base(file)
		locks, _ := os.ReadFile(filepath.Join(process, "fdinfo", number))
		pid, _ := strconv.Atoi(filepath.Base(process))
		if pid != os.Getpid() && holderIn(locks, parts) != 0 {
			return describe(pid)
		}
	}
	return ""
}

// inodeOf returns the number under which the kernel lists the locks of a file, or 0.
func inodeOf(path string) uint64 {
	var stat unix.Stat_t
	if unix.Stat(path, &stat) != nil {
		return 0
	}
	return stat.Ino
}

// holderIn returns the process that has a lock of parts according to the kernel: 0 if none but ours
// has one, and -1 if the kernel does not say which.
func holderIn(list []byte, parts []part) (pid int) {
	for line := range bytes.Lines(list) {
		var kind, advisory, access, file, end string
		var number, holder int
		var first uint64
		_, err := fmt.Sscanf(strings.TrimPrefix(string(line), "lock:"), "%d: %s %s %s %d %s %d %s",
			&number, &kind, &advisory, &access, &holder, &file, &first, &end)
		if err != nil || holder == os.Getpid() {
			continue // such as somebody who waits
		}
		last, err := strconv.ParseUint(end, 10, 64)
		if err != nil {
			last = math.MaxUint64 // it says EOF
		}
		inode, err := strconv.ParseUint(file[strings.LastIndexByte(file, ':')+1:], 10, 64)
		matches := func(p part) bool { return p.inode == inode && first <= p.last && last >= p.first }
		if err != nil || !slices.ContainsFunc(parts, matches) {
			continue
		}
		if pid = holder; pid > 0 {
			return pid
		}
	}
	return pid
}

// describe returns the name and number of a process.
func describe(pid int) string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return fmt.Sprintf("%s (process %d)", text.QuotedName(strings.TrimSpace(string(name))), pid)
}

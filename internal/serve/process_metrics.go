package serve

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// processUsage has what the operating system says of this process.
type processUsage struct {
	cpu                    float64 // seconds
	started                float64 // seconds since 1970
	resident, virtual      int     // bytes
	descriptors, maxOpened int
}

// maxOpenFiles is the line of /proc/self/limits with the number of open files.
var maxOpenFiles = regexp.MustCompile(`(?m)^Max open files +(\d+)`)

// readProcess returns what /proc says of this process. It returns false on systems without /proc.
func readProcess() (u processUsage, ok bool) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return u, false
	}
	_, rest, _ := bytes.Cut(stat, []byte(") ")) // the name of the program may have spaces
	fields := bytes.Fields(rest)
	// The first of these fields is the third one in proc_pid_stat(5).
	const user, system, start, virtual, resident = 14 - 3, 15 - 3, 22 - 3, 23 - 3, 24 - 3
	if len(fields) <= resident {
		return u, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(string(fields[i]))
		return n
	}
	const perSecond = 100 // Linux tells programs times in hundredths of a second on all processors
	u.cpu = float64(number(user)+number(system)) / perSecond
	u.virtual, u.resident = number(virtual), number(resident)*os.Getpagesize()
	u.started = bootTime() + float64(number(start))/perSecond
	entries, _ := os.ReadDir("/proc/self/fd")
	u.descriptors = max(0, len(entries)-1) // without that of the directory
	limits, _ := os.ReadFile("/proc/self/limits")
	if found := maxOpenFiles.FindSubmatch(limits); found != nil {
		u.maxOpened, _ = strconv.Atoi(string(found[1]))
	}
	return u, true
}

// bootTime returns when the system was started, in seconds since 1970.
func bootTime() float64 {
	uptime, _ := os.ReadFile("/proc/uptime")
	first, _, _ := bytes.Cut(uptime, []byte(" "))
	seconds, _ := strconv.ParseFloat(string(first), 64)
	return float64(time.Now().UnixMilli())/1000 - seconds
}

// writeProcess adds the metrics of this process, with the names that Prometheus gives them.
func writeProcess(b *strings.Builder) {
	u, ok := readProcess()
	if !ok {
		return
	}
	for _, m := range []struct {
		name, kind, help string
		value            float64
	}{
		{"process_cpu_seconds_total", "counter", "Processor time.", u.cpu},
		{"process_start_time_seconds", "gauge", "When the process was started, since 1970.", u.started},
		{"process_resident_memory_bytes", "gauge", "Resident memory.", float64(u.resident)},
		{"process_virtual_memory_bytes", "gauge", "Virtual memory.", float64(u.virtual)},
		{"process_open_fds", "gauge", "Open file descriptors.", float64(u.descriptors)},
		{"process_max_fds", "gauge", "Maximum number of open file descriptors.", float64(u.maxOpened)},
	} {
		fmt.Fprintf(b, "# HELP %s %s\n# TYPE %[1]s %[3]s\n%[1]s %[4]s\n", m.name, m.help, m.kind,
			strconv.FormatFloat(m.value, 'f', -1, 64))
	}
}

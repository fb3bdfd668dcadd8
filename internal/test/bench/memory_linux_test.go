package bench

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
)

var resident = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// rss returns the resident memory of a process in MiB.
func rss(b *testing.B, pid int) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	check(b, err)
	found := resident.FindSubmatch(status)
	if found == nil {
		b.Fatal("no VmRSS")
	}
	kib, err := strconv.Atoi(string(found[1]))
	check(b, err)
	return float64(kib) / 1024
}

// BenchmarkMemory reports the resident memory with one session, and what another hundred add.
func BenchmarkMemory(b *testing.B) {
	var one, hundred []float64
	program, cwd, lib := build(b, "cmd/acp-agent"), b.TempDir(), b.TempDir()
	for b.Loop() {
		a := run(b, []string{program})
		a.open(cwd, lib)
		one = append(one, rss(b, a.PID()))
		for range 100 {
			a.open(cwd, lib)
		}
		hundred = append(hundred, rss(b, a.PID()))
		a.leave()
	}
	b.ReportMetric(quantile(one, 0.5), "MiB")
	b.ReportMetric((quantile(hundred, 0.5)-quantile(one, 0.5))*1024/100, "KiB/session")
}

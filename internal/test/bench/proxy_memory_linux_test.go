package bench

import "testing"

// BenchmarkProxyMemory reports the resident memory of acp-agent in front of an agent, after a turn
// of 10,000 updates.
func BenchmarkProxyMemory(b *testing.B) {
	_, through := commands(b)
	cwd := b.TempDir()
	var resident []float64
	for b.Loop() {
		w := dial(b, through)
		w.turn(w.session(cwd), "flood")
		resident = append(resident, rss(b, w.cmd.Process.Pid))
		w.hangUp()
	}
	b.ReportMetric(quantile(resident, 0.5), "MiB")
}

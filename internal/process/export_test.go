package process

import (
	"slices"
	"time"
)

// WithTermGrace sets the time between SIGTERM and SIGKILL.
func (o Options) WithTermGrace(d time.Duration) Options {
	o.termGrace = d
	return o
}

// Later is a line that stands for a pause.
const Later = "-- later --"

// Explanation returns the explanation for a child that wrote lines to stderr.
func Explanation(lines []string) []string {
	var s stderrLog
	now, pause := time.Now(), time.Duration(0)
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i] == Later {
			pause += time.Minute
		} else if lines[i] != "" {
			s.recent = append(s.recent, stderrLine{lines[i], now.Add(-pause)})
		}
	}
	slices.Reverse(s.recent)
	return explanation(s.recent[max(0, len(s.recent)-maxRecent):])
}

package serve

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// buckets are the upper bounds of a histogram's buckets, in seconds. Turns take the longest.
var buckets = [...]float64{.001, .005, .02, .1, .5, 2, 10, 60, 300, 1800}

type histogram struct {
	counts [len(buckets) + 1]int // of values up to each bound, and of greater ones
	sum    time.Duration
}

// histograms are those of one metric, by their labels.
type histograms map[string]*histogram

// add counts a duration.
func (h histograms) add(labels string, d time.Duration) {
	one := h[labels]
	if one == nil {
		one = &histogram{}
		h[labels] = one
	}
	i, _ := slices.BinarySearch(buckets[:], d.Seconds())
	one.counts[i]++
	one.sum += d
}

// write writes the samples of all.
func (h histograms) write(b *strings.Builder, name string) {
	for _, labels := range slices.Sorted(maps.Keys(h)) {
		h[labels].write(b, name, labels)
	}
}

// write writes the samples of a histogram.
func (h *histogram) write(b *strings.Builder, name, labels string) {
	n := 0
	for i, count := range h.counts {
		n += count
		bound := "+Inf"
		if i < len(buckets) {
			bound = fmt.Sprint(buckets[i])
		}
		fmt.Fprintf(b, "%s_bucket{%s,le=%q} %d\n", name, labels, bound, n)
	}
	fmt.Fprintf(b, "%s_sum{%s} %g\n%s_count{%s} %d\n",
		name, labels, h.sum.Seconds(), name, labels, n)
}

package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// plot is how long operations take on several sizes of something.
type plot struct {
	title, unit string
	sizes       []int
	lines       []*line
	size        int // the index of the current size
}

// line is the measurements of one operation, by size.
type line struct {
	name      string
	wall, cpu [][]time.Duration
}

// begin begins the measurements of the next size.
func (p *plot) begin() { p.size++ }

// add adds a measurement of the current size.
func (p *plot) add(name string, wall, cpu time.Duration) {
	i := slices.IndexFunc(p.lines, func(l *line) bool { return l.name == name })
	if i < 0 {
		i = len(p.lines)
		sizes := len(p.sizes)
		p.lines = append(p.lines,
			&line{name, make([][]time.Duration, sizes), make([][]time.Duration, sizes)})
	}
	l, at := p.lines[i], p.size-1
	l.wall[at], l.cpu[at] = append(l.wall[at], wall), append(l.cpu[at], cpu)
}

// table returns the medians as a table in Markdown.
func (p *plot) table() string {
	var t strings.Builder
	fmt.Fprintf(&t, "| ms (CPU ms), %s |", p.unit)
	for _, size := range p.sizes {
		fmt.Fprintf(&t, " %d |", size)
	}
	t.WriteString("\n|---" + strings.Repeat("|---", len(p.sizes)) + "|\n")
	for _, l := range p.lines {
		fmt.Fprintf(&t, "| %s |", l.name)
		for i := range p.sizes {
			fmt.Fprintf(&t, " %.1f (%.1f) |", ms(quantile(l.wall[i], 0.5)), ms(quantile(l.cpu[i], 0.5)))
		}
		t.WriteByte('\n')
	}
	return t.String()
}

// The size of a plot in pixels, its margins, and its range in milliseconds.
const (
	plotWidth, plotHeight = 480, 320
	plotLeft, plotRight   = 50, 80
	plotTop, plotBottom   = 10, 40
	leastMS, mostMS       = 0.1, 10_000
)

// svg returns the medians of the CPU time as a picture, because that is comparable on a machine that does
// other things, too. Both axes are logarithmic.
func (p *plot) svg() []byte {
	var s bytes.Buffer
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" `+
		`font-family="sans-serif" font-size="11"><rect width="100%%" height="100%%" fill="white"/>`+"\n",
		plotWidth, plotHeight)
	text := func(x, y float64, anchor, color, text string) {
		fmt.Fprintf(&s, `<text x="%.0f" y="%.0f" text-anchor="%s" fill="%s">%s</text>`+"\n",
			x, y, anchor, color, text)
	}
	for t := leastMS; t <= mostMS; t *= 10 {
		y := yOf(t)
		fmt.Fprintf(&s, `<path d="M%d %.0fH%d" stroke="#ddd"/>`+"\n", plotLeft, y, plotWidth-plotRight)
		text(plotLeft-5, y+4, "end", "#555", fmt.Sprintf("%g ms", t))
	}
	for _, size := range p.sizes {
		text(p.xOf(size), plotHeight-plotBottom+16, "middle", "#555", fmt.Sprint(size))
	}
	text((plotLeft+plotWidth-plotRight)/2, plotHeight-6, "middle", "#555", p.unit)

	last := len(p.sizes) - 1
	lines := slices.SortedFunc(slices.Values(p.lines), func(a, b *line) int {
		return cmp.Compare(quantile(b.cpu[last], 0.5), quantile(a.cpu[last], 0.5))
	})
	below := 0.0 // the name before
	for i, l := range lines {
		color := fmt.Sprintf("hsl(%d 70%% 40%%)", 360*i/len(lines))
		var points []string
		y := 0.0
		for at, size := range p.sizes {
			y = yOf(ms(quantile(l.cpu[at], 0.5)))
			points = append(points, fmt.Sprintf("%.0f %.0f", p.xOf(size), y))
		}
		fmt.Fprintf(&s, `<path d="M%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n",
			strings.Join(points, "L"), color)
		below = max(y, below+12)
		text(plotWidth-plotRight+6, below+4, "start", color, l.name)
	}
	s.WriteString("</svg>\n")
	return s.Bytes()
}

// xOf returns where a size is in the plot.
func (p *plot) xOf(size int) float64 {
	share := math.Log(float64(size)/float64(p.sizes[0])) /
		math.Log(float64(p.sizes[len(p.sizes)-1])/float64(p.sizes[0]))
	return plotLeft + 20 + share*(plotWidth-plotLeft-plotRight-30)
}

// yOf returns where a time is in the plot.
func yOf(ms float64) float64 {
	share := math.Log(max(ms, leastMS)/leastMS) / math.Log(mostMS/leastMS)
	return plotHeight - plotBottom - share*(plotHeight-plotTop-plotBottom)
}

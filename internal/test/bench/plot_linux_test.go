package bench

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"html"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// measurement is how long an operation took on a size of what grows: medians in milliseconds.
type measurement struct {
	growth, operation string
	size              int
	cpu, wall         float64
}

// samples collects what operations take, by their names.
type samples struct {
	operations []string // in the order in which they came
	cpu, wall  map[string][]time.Duration
}

func newSamples() *samples {
	return &samples{cpu: map[string][]time.Duration{}, wall: map[string][]time.Duration{}}
}

func (s *samples) add(operation string, wall, cpu time.Duration) {
	if len(s.cpu[operation]) == 0 {
		s.operations = append(s.operations, operation)
	}
	s.cpu[operation] = append(s.cpu[operation], cpu)
	s.wall[operation] = append(s.wall[operation], wall)
}

// medians returns a measurement for each operation.
func (s *samples) medians(growth string, size int) (all []measurement) {
	for _, name := range s.operations {
		all = append(all, measurement{growth, name, size,
			ms(quantile(s.cpu[name], 0.5)), ms(quantile(s.wall[name], 0.5))})
	}
	return all
}

// recorded is the file with the measurements from which the plots are drawn.
const recorded = "growth.csv"

var columns = []string{"growth", "operation", "size", "cpu ms", "wall ms"}

// writeRecord writes measurements to a directory.
func writeRecord(dir string, all []measurement) error {
	rows := [][]string{columns}
	for _, m := range all {
		rows = append(rows, []string{m.growth, m.operation, strconv.Itoa(m.size),
			fmt.Sprintf("%.2f", m.cpu), fmt.Sprintf("%.2f", m.wall)})
	}
	var text bytes.Buffer
	if err := csv.NewWriter(&text).WriteAll(rows); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, recorded), text.Bytes(), 0o644)
}

// readRecord reads what writeRecord wrote.
func readRecord(dir string) (all []measurement, err error) {
	text, err := os.ReadFile(filepath.Join(dir, recorded))
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	for _, row := range rows[1:] {
		m := measurement{growth: row[0], operation: row[1]}
		_, err = fmt.Sscan(strings.Join(row[2:], " "), &m.size, &m.cpu, &m.wall)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", row, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// drawPlots returns the plots of measurements by the names of their files.
func drawPlots(all []measurement) map[string][]byte {
	plots := map[string][]byte{}
	for _, g := range growths(true) {
		p := plot{title: g.title, unit: g.unit}
		for _, m := range all {
			if m.growth == g.name {
				p.add(m)
			}
		}
		if len(p.lines) > 0 {
			plots[g.name+".svg"] = p.svg()
		}
	}
	return plots
}

// The plots in docs/internals/growth are drawn from the measurements there. ACP_AGENT_UPDATE=1
// draws them.
func TestPlotsShowWhatWasRecorded(t *testing.T) {
	const dir = "../../../docs/internals/growth"
	all, err := readRecord(dir)
	require.NoError(t, err)
	plots := drawPlots(all)
	if os.Getenv("ACP_AGENT_UPDATE") != "" {
		require.NoError(t, writePlots(dir, plots))
	}
	for _, name := range slices.Sorted(maps.Keys(plots)) {
		content, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, string(plots[name]), string(content), name)
	}
}

func writePlots(dir string, plots map[string][]byte) error {
	for name, svg := range plots {
		if err := os.WriteFile(filepath.Join(dir, name), svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// plot is the CPU time of operations by the size of something. Both axes are logarithmic.
type plot struct {
	title, unit string
	sizes       []int
	lines       []*line
	ticks       []float64 // in milliseconds, the first and the last of which are the ends of the axis
}

// line is the milliseconds of one operation, by size.
type line struct {
	name string
	ms   []float64
}

func (p *plot) add(m measurement) {
	if !slices.Contains(p.sizes, m.size) {
		p.sizes = append(p.sizes, m.size)
	}
	i := slices.IndexFunc(p.lines, func(l *line) bool { return l.name == m.operation })
	if i < 0 {
		i = len(p.lines)
		p.lines = append(p.lines, &line{name: m.operation})
	}
	p.lines[i].ms = append(p.lines[i].ms, max(m.cpu, 0.01))
}

func (l *line) last() float64 { return l.ms[len(l.ms)-1] }

// grows reports whether the operation takes twice as long on the largest size as on the smallest.
func (l *line) grows() bool { return l.last() > 2*l.ms[0] }

// The size of a plot in pixels, its margins, and the distance between names.
const (
	plotWidth, plotHeight = 560, 330
	plotLeft, plotRight   = 52, 132
	plotTop, plotBottom   = 38, 46
	nameHeight            = 15
	plotX, plotEnd        = plotLeft + 14, plotWidth - plotRight
)

// plotStyle has the colors for both schemes. Lines that grow have one each, by their order.
const plotStyle = `
svg { --page: #fff; --text: #1f1f23; --dim: #5d5d68; --grid: #e2e0da; --flat: #8b8b96;
  --c0: #b3420c; --c1: #2b5fb8; --c2: #7a3f9d; --c3: #1d6b3a; --c4: #805600 }
@media (prefers-color-scheme: dark) { svg { --page: #0d1117; --text: #e4e4e7; --dim: #a3a4af;
  --grid: #2b2d34; --flat: #7d7e88; --c0: #ff9d6b; --c1: #8ab4ff; --c2: #d3a4ee; --c3: #84d19c; --c4: #e2c267 } }
text { font: 12px system-ui, sans-serif; fill: var(--dim) } .title { font-size: 15px;
  font-weight: 600; fill: var(--text) } path { fill: none; stroke: var(--grid) }
.line { stroke-width: 2; stroke-linejoin: round } .flat { stroke: var(--flat); stroke-width: 1.25 }
`

// svg returns the plot as a picture. It shows CPU time, because that is comparable on a machine
// that does other things, too. Only lines that grow have a color.
func (p *plot) svg() []byte {
	p.scale()
	var s bytes.Buffer
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">`+"\n"+
		"<title>%s</title>\n<style>%s</style>\n"+
		`<rect width="100%%" height="100%%" style="fill: var(--page)"/>`+"\n",
		plotWidth, plotHeight, p.title, plotStyle)
	fmt.Fprintf(&s, `<text class="title" x="12" y="22">%s</text>`+"\n", html.EscapeString(p.title))
	for _, t := range p.ticks {
		fmt.Fprintf(&s, `<path d="M%d %.1fH%d"/>`+"\n", plotLeft, p.y(t), plotEnd)
		writeText(&s, plotLeft-6, p.y(t)+4, "end", milliseconds(t))
	}
	for _, size := range p.sizes {
		fmt.Fprintf(&s, `<path d="M%.1f %dv5"/>`+"\n", p.x(size), plotHeight-plotBottom)
		writeText(&s, p.x(size), plotHeight-plotBottom+18, "middle", thousands(size))
	}
	writeText(&s, (plotX+plotEnd)/2, plotHeight-10, "middle", p.unit)
	p.writeLines(&s)
	s.WriteString("</svg>\n")
	return s.Bytes()
}

func writeText(s *bytes.Buffer, x, y float64, anchor, text string) {
	fmt.Fprintf(s, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, text)
}

// writeLines writes the lines, those that grow on top, and at the end of each its name.
func (p *plot) writeLines(s *bytes.Buffer) {
	slices.SortStableFunc(p.lines, func(a, b *line) int { return cmp.Compare(b.last(), a.last()) })
	names := p.namePositions()
	color := 0
	for _, flat := range []bool{true, false} {
		for i, l := range p.lines {
			if l.grows() == flat {
				continue
			}
			class, fill, stroke := "flat", "", ""
			if !flat {
				fill = fmt.Sprintf(` style="fill: var(--c%d)"`, color%5)
				class, stroke = "line", fmt.Sprintf(` style="stroke: var(--c%d)"`, color%5)
				color++
			}
			var points []string
			for at, size := range p.sizes {
				points = append(points, fmt.Sprintf("%.1f %.1f", p.x(size), p.y(l.ms[at])))
			}
			fmt.Fprintf(s, `<path class="%s" d="M%s"%s/>`+"\n", class, strings.Join(points, "L"), stroke)
			fmt.Fprintf(s, `<path d="M%d %.1fL%d %.1f"/>`+"\n",
				plotEnd, p.y(l.last()), plotEnd+14, names[i])
			fmt.Fprintf(s, `<text x="%d" y="%.1f"%s>%s, %s</text>`+"\n",
				plotEnd+18, names[i]+4, fill, l.name, milliseconds(l.last()))
		}
	}
}

// namePositions returns where the names of the sorted lines are: at their ends, or as near as
// others leave room. Names that would overlap are a block around the middle of their lines.
func (p *plot) namePositions() []float64 {
	type block struct {
		middle float64
		names  int
	}
	top := func(b block) float64 { return b.middle - float64(b.names-1)*nameHeight/2 }
	var blocks []block
	for _, l := range p.lines {
		blocks = append(blocks, block{p.y(l.last()), 1})
		for len(blocks) > 1 {
			a, b := blocks[len(blocks)-2], blocks[len(blocks)-1]
			if top(a)+float64(a.names)*nameHeight <= top(b) {
				break
			}
			names := a.names + b.names
			middle := (a.middle*float64(a.names) + b.middle*float64(b.names)) / float64(names)
			half := float64(names-1) * nameHeight / 2
			middle = min(max(middle, plotTop+half), plotHeight-plotBottom-half)
			blocks = append(blocks[:len(blocks)-2], block{middle, names})
		}
	}
	var positions []float64
	for _, b := range blocks {
		for i := range b.names {
			positions = append(positions, top(b)+float64(i)*nameHeight)
		}
	}
	return positions
}

// scale chooses ticks 1, 2 and 5 times a power of ten that enclose all lines, or powers of ten
// alone if that is enough.
func (p *plot) scale() {
	least, most := math.Inf(1), 0.0
	for _, l := range p.lines {
		least, most = min(least, slices.Min(l.ms)), max(most, slices.Max(l.ms))
	}
	var fine []float64
	for power := math.Pow(10, math.Floor(math.Log10(least))); power < most*10; power *= 10 {
		fine = append(fine, power, 2*power, 5*power)
	}
	for len(fine) > 1 && fine[1] <= least {
		fine = fine[1:]
	}
	for len(fine) > 1 && fine[len(fine)-2] >= most {
		fine = fine[:len(fine)-1]
	}
	p.ticks = fine
	if most/least < 100 {
		return
	}
	ends := []float64{fine[0], fine[len(fine)-1]}
	p.ticks = slices.DeleteFunc(fine, func(t float64) bool {
		power := math.Pow(10, math.Round(math.Log10(t)))
		return math.Abs(t/power-1) > 0.01 && !slices.Contains(ends, t)
	})
}

// x returns where a size is in the plot.
func (p *plot) x(size int) float64 {
	first, last := float64(p.sizes[0]), float64(p.sizes[len(p.sizes)-1])
	return plotX + math.Log(float64(size)/first)/math.Log(last/first)*(plotEnd-plotX)
}

// y returns where a time is in the plot.
func (p *plot) y(ms float64) float64 {
	first, last := p.ticks[0], p.ticks[len(p.ticks)-1]
	share := math.Log(ms/first) / math.Log(last/first)
	return plotHeight - plotBottom - share*(plotHeight-plotTop-plotBottom)
}

// milliseconds returns a time for people, with two digits.
func milliseconds(ms float64) string {
	unit := "ms"
	if ms >= 1000 {
		ms, unit = ms/1000, "s"
	}
	digits := max(0, 1-int(math.Floor(math.Log10(ms))))
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(ms, 'f', digits, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64) + " " + unit
}

// thousands returns a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

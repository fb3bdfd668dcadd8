package terminal

import (
	"fmt"
	"io"
	"strings"
)

// A Table prints rows whose cells stand in columns. On a terminal it fits: the widest cells are
// wrapped, and the last columns are left out, and named, if they do not fit.
type Table struct {
	out  io.Writer
	rows [][]string // the header first
	// OneLine shortens cells in place of wrapping them.
	OneLine bool
}

// NewTable returns a table with a header, the most important columns first.
func NewTable(out io.Writer, header ...any) *Table {
	t := &Table{out: out}
	t.Row(header...)
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = fmt.Sprint(cell)
	}
	t.rows = append(t.rows, row)
}

// gap is the number of columns between two cells.
const gap = 2

// Print prints the rows.
func (t *Table) Print() error {
	width := Width(t.out)
	widths := t.widths(width)
	var b strings.Builder
	for _, row := range t.rows {
		cells, height := make([][]string, len(widths)), 1
		for i := range cells {
			cells[i] = []string{Cut(row[i], widths[i])}
			if !t.OneLine {
				cells[i] = wrapped(row[i], widths[i])
			}
			height = max(height, len(cells[i]))
		}
		for n := range height {
			line, column := "", 0
			for i, cell := range cells {
				if n < len(cell) && strings.TrimSpace(cell[n]) != "" {
					line += strings.Repeat(" ", max(column-Columns(line), 0)) +
						strings.TrimRight(cell[n], " ")
				}
				column += widths[i] + gap
			}
			b.WriteString(line + "\n")
		}
	}
	if left := t.rows[0][len(widths):]; len(left) > 0 && len(t.rows) > 1 {
		b.WriteString(wrap("On a wider terminal also: "+strings.Join(left, ", "), "", width) + "\n")
	}
	_, err := io.WriteString(t.out, b.String())
	return err
}

// widths returns the widths of the columns that fit on a terminal, or of all if width is 0.
func (t *Table) widths(width int) []int {
	const least, enough = 10, 15 // of a column, if it needs as much
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], Columns(cell))
		}
	}
	if width == 0 {
		return widths
	}
	widths[0] = min(widths[0], max(width/3, least)) // it names the row
	room, needed := width-1+gap, widths[0]+gap
	for i, w := range widths[1:] {
		if needed += min(w, enough) + gap; needed > room && i > 0 {
			widths = widths[:i+1]
			break
		}
	}
	for {
		sum, widest := gap*len(widths), 0
		for i, w := range widths {
			sum += w
			if i > 0 && (widest == 0 || w > widths[widest]) {
				widest = i
			}
		}
		switch {
		case sum <= room || widest == 0:
			return widths
		case widths[widest] <= least: // none can be narrower
			widths = widths[:len(widths)-1]
		default:
			widths[widest]--
		}
	}
}

package terminal

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Table prints rows whose cells stand in columns.
type Table struct{ lines *tabwriter.Writer }

// NewTable returns a table with a header.
func NewTable(out io.Writer, header ...any) Table {
	t := Table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	t.Row(header...)
	return t
}

// Row adds a row.
func (t Table) Row(cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(t.lines, "\t")
		}
		fmt.Fprint(t.lines, cell)
	}
	fmt.Fprintln(t.lines)
}

// Flush prints the rows that are not printed yet.
func (t Table) Flush() error { return t.lines.Flush() }

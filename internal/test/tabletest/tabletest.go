// Package tabletest reads the tables of tests.
package tabletest

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Read returns the lines of a file in the directory testdata, by the headings above them, which
// begin with "# ". A line with a quotation mark at its beginning is a string of Go.
func Read(t testing.TB, file string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	table, heading := map[string][]string{}, ""
	for line := range strings.SplitSeq(string(text), "\n") {
		if name, is := strings.CutPrefix(line, "# "); is {
			heading = name
			continue
		}
		if strings.HasPrefix(line, `"`) {
			line, err = strconv.Unquote(line)
			require.NoError(t, err, line)
		} else if line == "" {
			continue
		}
		table[heading] = append(table[heading], line)
	}
	require.NotEmpty(t, table, file)
	return table
}

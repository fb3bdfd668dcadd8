// Package tabletest reads the tables of tests.
package tabletest

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Read parses a file in the directory testdata.
func Read(t testing.TB, file string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	return Parse(t, string(text))
}

// Parse returns the lines of a text by the headings above them, which begin with "# ". A line with
// a quotation mark at its beginning is a string of Go.
func Parse(t testing.TB, text string) map[string][]string {
	t.Helper()
	table, heading := map[string][]string{}, ""
	for line := range strings.SplitSeq(text, "\n") {
		if name, is := strings.CutPrefix(line, "# "); is {
			heading = name
			continue
		}
		if strings.HasPrefix(line, `"`) {
			unquoted, err := strconv.Unquote(line)
			require.NoError(t, err, line)
			line = unquoted
		} else if line == "" {
			continue
		}
		table[heading] = append(table[heading], line)
	}
	require.NotEmpty(t, table)
	return table
}

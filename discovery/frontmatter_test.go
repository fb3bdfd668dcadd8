package discovery

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// Where frontmatter is YAML as people write it, it is read as such.
//
// Clause A25.
func TestFrontmatterIsYAML(t *testing.T) {
	for _, head := range []string{
		"name: a\ndescription: Does it. Use it, then.\n",
		"a: 'it''s'\nb: \"say \\\"x\\\"\\u00e9\"\nc: \"it's\"\nd: ''\n",
		"a: x # comment\nb: 'x # none'\n# comment\nc: x#none\n",
		"a: >-\n  one\n  two\nb: |-\n  one\nc: one\n  two\n",
		"a: [x, 'y', \"z w\"]\nb:\n  - x\n  - 'y' # comment\nc:\n- x\nd: [\n  x,\n  y\n]\n",
		"a: ~\nb: null\nc:\nd: x\n",
		"metadata:\n  author: x\n  tags: [y]\na: x\n",
		"a-b: x:y\nc_d: https://example.com/#x\n",
	} {
		var want map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(head), &want), head)
		got := readLines(head)
		require.Len(t, got, len(want), head)
		for key, value := range want {
			switch value := value.(type) {
			case nil:
				require.Empty(t, got[key].text, head)
			case string:
				require.Equal(t, value, got[key].text, head)
			case []any:
				for i, glob := range globList(got[key]) {
					require.Equal(t, value[i], strings.TrimSpace(glob), head)
				}
			}
		}
	}
}

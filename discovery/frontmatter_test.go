package discovery

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Clause A25.
func TestPlainFrontmatter(t *testing.T) {
	key := rapid.StringOfN(rapid.RuneFrom([]rune("abyn-")), 1, 4, -1)
	text := rapid.StringOfN(rapid.RuneFrom([]rune("aNul~ :#-?[]{},&*!|>'\"%@`.…\u00a0\t")), 0, 8,
		-1)
	property := rapid.MakeCheck(func(t *rapid.T) {
		var lines []string
		for range rapid.IntRange(0, 3).Draw(t, "lines") {
			lines = append(lines, key.Draw(t, "key")+": "+text.Draw(t, "text"))
		}
		plain(t, "---\n"+strings.Join(lines, "\n")+"\n---\n")
	})
	for range 8 { // it is cheap
		property(t)
	}
}

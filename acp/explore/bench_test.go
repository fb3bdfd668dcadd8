package explore

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkSearch searches 2,000 files of 8 KiB in three roots, of which one line in each tenth
// file is a hit.
func BenchmarkSearch(b *testing.B) {
	const files, line = 2000,
		"\tif err := store.Find(ctx, order.ID); err != nil { // nothing to see\n"
	body := strings.Repeat(line, 8<<10/len(line))
	var roots []string
	for r := range 3 {
		tree := fileTree{".gitignore": "*.log\n/build/\nnode_modules/\n"}
		for i := r; i < files; i += 3 {
			content := body
			if i%10 == 0 {
				content += "needle\n"
			}
			tree[fmt.Sprintf("pkg%02d/file%04d.go", i%40, i)] = content
		}
		roots = append(roots, plant(b, tree))
	}
	c := open(b, limits{}, roots...)
	for name, question := range map[string]string{
		"literal": "/search needle", "class": `/search n[e]{2}d\w+$`, "words": "Needle",
		"find": "/find **/*.go",
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(files * len(body)))
			for b.Loop() {
				if a := c.ask(question); a.stop != "end_turn" || len(a.lines()) != 200 {
					b.Fatal(len(a.lines()), a.stop)
				}
			}
		})
	}
}

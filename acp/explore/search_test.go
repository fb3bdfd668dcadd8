package explore

import (
	"context"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace/tools"
)

func TestSearch(t *testing.T) {
	app, shared, skills := example(t)
	c := open(t, limits{}, app, shared, skills)
	a := c.ask(`/search ^func Retry\w+`)
	require.Equal(t, "end_turn", a.stop)
	require.Equal(t, []string{
		"shared/httpx/after.go:12: func RetryAfter(header http.Header, now time.Time) (wait " +
			"time.Duration, ok bool) {",
	}, a.lines())

	call := a.call(t)
	require.Equal(t, sdk.ToolKindSearch, call.Tool)
	require.Equal(t, sdk.ToolCallStatusCompleted, call.Status)
	require.Equal(t, map[string]any{"regexp": `^func Retry\w+`}, call.RawInput)
	require.Contains(t, call.text(), "`app`: none; `shared`: 1 line in 1 file; `skills`: none.")

	a = c.ask("/search no such thing anywhere")
	require.Contains(t, a.text(), "No lines found in `app`, `shared`, `skills`.")
	require.Empty(t, a.lines())
}

func TestInvalidRegexp(t *testing.T) {
	c := open(t, limits{}, plant(t, nil))
	for expression, why := range map[string]string{
		"(":                       "missing closing )",
		`(?:[a-z]{50}){1000}`:     "", // too many repeats for Go
		`(?:abcdefghijklmn){900}`: "the limit is 10000",
	} {
		a := c.ask("/search " + expression)
		require.Equal(t, "end_turn", a.stop)
		require.Contains(t, a.text(), "Invalid regular expression")
		require.Contains(t, a.text(), why)
		require.Len(t, a.updates, 1, "no tool call")
	}
}

func TestWords(t *testing.T) {
	cwd := plant(t, fileTree{
		"a.txt": "The Payment is retried later.\nA payment fails.\nÉTÉ\n",
		"b.txt": "retrying payments\nnothing\n",
	})
	c := open(t, limits{}, cwd)
	name := c.session.(*explorerSession).roots[0].Label
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"all of them, in any order and case", "payment RETR",
			[]string{"a.txt:1: The Payment is retried later.", "b.txt:1: retrying payments"}},
		{"punctuation around them", `"Payment", fails?`, []string{"a.txt:2: A payment fails."}},
		{"a word twice", "nothing nothing", []string{"b.txt:2: nothing"}},
		{"beyond ASCII", "été", []string{"a.txt:3: ÉTÉ"}},
		{"only some of them", "a payment fails sometimes", nil},
		{"none", "xyzzy", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := c.ask(test.text)
			var want []string
			for _, line := range test.want {
				want = append(want, name+"/"+line)
			}
			require.Equal(t, want, a.lines())
		})
	}
	require.Contains(t, c.ask("\u202f").text(), "You can use these commands")
	require.Contains(t,
		c.ask(strings.Repeat("w1 w2 w3 w4 w5 ",
			9)+strings.Join(strings.Split("abcdefghijklmnop", ""), " ")).text(),
		"Only the first 16 words are searched for.")
}

// The answer is the same however many workers there are and however fast each is.
func TestOrderOfFiles(t *testing.T) {
	files := fileTree{}
	for i := range 300 {
		files[fmt.Sprintf("%02d/%03d.txt", i%7, i)] = strings.Repeat("x\n", i*i%500) + "needle\n"
	}
	c := open(t, limits{hits: 1000, bytes: 1 << 20}, plant(t, files))
	first := c.ask("needle")
	require.Len(t, first.lines(), 300)
	require.IsIncreasing(t, first.lines())
	for range 5 {
		require.Equal(t, first.text(), c.ask("needle").text())
	}
}

func TestExcerpts(t *testing.T) {
	c := open(t, limits{}, plant(t, fileTree{
		"a.txt": "\t needle \x1b[31m\r\n" + strings.Repeat("é", 400) + "needle" +
			strings.Repeat("x", 5000) + "\n",
	}))
	lines := c.ask("/search needle").lines()
	require.Len(t, lines, 2)
	require.True(t, strings.HasSuffix(lines[0], ":1: needle \uFFFD[31m"), lines[0])
	require.Contains(t, lines[1], ":2: …é")
	require.Contains(t, lines[1], "needle")
	require.True(t, strings.HasSuffix(lines[1], "x…"), lines[1])
	require.Less(t, len(lines[1]), 400)
}

func TestLongLines(t *testing.T) {
	c := open(t, limits{}, plant(t, fileTree{"a.txt": strings.Repeat("x", 100_000) + "needle\n"}))
	require.Len(t, c.ask("/search n..dle$").lines(), 1)
	require.Len(t, c.ask("needle").lines(), 1)
}

func TestLargeFiles(t *testing.T) {
	cwd := plant(t, fileTree{"large": strings.Repeat("x\n", 50_000) + "needle\n",
		"long": strings.Repeat("needle ", 20_000)})
	a := open(t, limits{fileSize: 1024}, cwd).ask("/search needle")
	require.Len(t, a.lines(), 1)
	require.Contains(t, a.lines()[0], "large:50001: needle")
	require.Contains(t, a.text(), "Left out: 1 file over 1 KiB.")
}

func TestWordsAreCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	words, _ := newWords("ab")
	text := []byte(strings.Repeat("ab\n", 16<<10))
	require.ErrorIs(t, words.Find(ctx, text, func(tools.Match) bool {
		return true
	}), context.Canceled)
}

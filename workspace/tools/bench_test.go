package tools

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
	"github.com/acp-agent/acp-agent/workspace"
)

var (
	benchFiles = flag.Int("bench.files", 20_000, "number of files that benchmarks scan")
	benchTree  = flag.String("bench.tree", "", "a directory to scan instead of a generated one")
)

const rare = "xyzzyneedle"

// newTree creates a tree of Go-like files, 20 per directory, of which one in 20,000 contains a rare
// word.
func newTree(b *testing.B) string {
	b.Helper()
	top := dirtest.New(b)
	words := strings.Fields("func return if err nil store find order id context package import type struct interface " +
		"string int range append make map chan select case default switch error request response handler client server")
	random := rand.New(rand.NewPCG(1, 2))
	texts := make([]string, 200)
	for i := range texts {
		var text strings.Builder
		for range 20 + random.IntN(100) {
			text.WriteString(strings.Repeat("\t", random.IntN(4)))
			for range 2 + random.IntN(7) {
				text.WriteString(words[random.IntN(len(words))] + " ")
			}
			text.WriteString("\n")
		}
		texts[i] = text.String()
	}
	for n := range *benchFiles {
		dir := filepath.Join(top, fmt.Sprintf("mod%02d/pkg%d/sub%d/d%d", n/10000, n/1000%10,
			n/100%10, n/20%5))
		if n%20 == 0 {
			require.NoError(b, os.MkdirAll(dir, 0o700))
		}
		text := texts[random.IntN(len(texts))]
		if n%20_000 == 777 {
			text += rare + "\n"
		}
		require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%02d.go", n%20)),
			[]byte(text), 0o600))
	}
	rules := "*.log\n/build/\nnode_modules/\n*.o\n.env\n!keep.log\n/docs/**/gen/\ntmp*\n"
	require.NoError(b, os.WriteFile(filepath.Join(top, ".gitignore"), []byte(rules), 0o600))
	return top
}

// BenchmarkAgainstRipgrep compares searching for a rare word and listing all files with ripgrep, on
// the same tree and with as many threads.
func BenchmarkAgainstRipgrep(b *testing.B) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		b.Skip("ripgrep is not installed")
	}
	top := *benchTree
	if top == "" {
		top = newTree(b)
	}
	roots, err := workspace.NewRoots(top, nil)
	require.NoError(b, err)
	ws, err := workspace.Open(context.Background(), roots, workspace.Options{})
	require.NoError(b, err)
	defer ws.Close()
	n := 0
	w := walk{ws: ws, leaveIgnored: true,
		each: func(found) bool { n++; return true }}
	search := func(b *testing.B, text string, literal, ignoreCase bool) {
		pattern, err := newPattern(text, literal, ignoreCase)
		require.NoError(b, err)
		w := w
		w.query = &query{pattern: pattern, limits: limits{}.withDefaults()}
		for b.Loop() {
			err = w.run(b.Context())
			require.NoError(b, err)
		}
	}
	ripgrep := func(b *testing.B, args ...string) {
		for b.Loop() {
			args := append([]string{"--threads=2", "--hidden", "--no-require-git", "--no-messages"},
				args...)
			require.NoError(b, exec.Command(rg, append(args, top)...).Run())
		}
	}
	b.Run("search/ours", func(b *testing.B) { search(b, rare, true, false) })
	b.Run("search/rg", func(b *testing.B) { ripgrep(b, "--fixed-strings", rare) })
	b.Run("expression/ours", func(b *testing.B) { search(b, `xyz+y\w+dle`, false, false) })
	b.Run("expression/rg", func(b *testing.B) { ripgrep(b, `xyz+y\w+dle`) })
	b.Run("case/ours", func(b *testing.B) { search(b, rare, true, true) })
	b.Run("case/rg", func(b *testing.B) { ripgrep(b, "--fixed-strings", "--ignore-case", rare) })
	const gap = `(?i)retry.*timeout` // many lines have "return"
	b.Run("gap/ours", func(b *testing.B) { search(b, gap, false, false) })
	b.Run("gap/rg", func(b *testing.B) {
		for b.Loop() {
			_ = exec.Command(rg, "--threads=2", "--hidden", "--no-require-git", gap, top).Run()
		}
	})
	b.Run("files/ours", func(b *testing.B) {
		for b.Loop() {
			n = 0
			err := w.run(b.Context())
			require.NoError(b, err)
			require.NotZero(b, n)
		}
	})
	b.Run("files/rg", func(b *testing.B) { ripgrep(b, "--files") })
}

// BenchmarkFindByName compares finding files by a pattern with ripgrep and with
// @modelcontextprotocol/server-filesystem, each of which is left out if it is not installed. That
// server cannot search in files.
func BenchmarkFindByName(b *testing.B) {
	const pattern = "**/file07.go"
	top := newTree(b)
	want := *benchFiles / 20
	b.Run("ours", func(b *testing.B) {
		h := serve(b, openRoots(b, top), Options{limits: limits{entries: want, bytes: 100 << 20}})
		for b.Loop() {
			require.Len(b, do[foundFiles](h, "find_files", args{"glob": pattern}).Files, want)
		}
	})
	b.Run("rg", func(b *testing.B) {
		rg := needs.Programs(b, "rg")[0]
		for b.Loop() {
			out, err := exec.Command(rg, "--files", "--hidden", "--no-require-git", "--threads=2",
				"--glob="+pattern, top).Output()
			require.NoError(b, err)
			require.Equal(b, want, strings.Count(string(out), "\n"))
		}
	})
	b.Run("server-filesystem", func(b *testing.B) {
		command := append(npmtest.Filesystem(b), top)
		client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
		session, err := client.Connect(b.Context(),
			&mcp.CommandTransport{Command: exec.Command(command[0], command[1:]...)}, nil)
		require.NoError(b, err)
		defer session.Close()
		call := &mcp.CallToolParams{Name: "search_files",
			Arguments: args{"path": top, "pattern": pattern}}
		for b.Loop() {
			result, err := session.CallTool(b.Context(), call)
			require.NoError(b, err)
			require.Equal(b, want-1, strings.Count(result.Content[0].(*mcp.TextContent).Text, "\n"))
		}
	})
}

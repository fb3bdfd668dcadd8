package discovery_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/acp-agent/acp-agent/discovery"
)

// Each archive in testdata is a tree, what is made of it by lines of its comment, and in the file "want" what is found:
//
//	roots a b         the roots, cwd first
//	link PATH TARGET  makes a symbolic link
//	hex PATH BYTES    makes a file of these bytes
//	size PATH N       makes a file of N bytes
//	max NAME N        sets a limit
//	touch PATH        wants what Catalog.For says of the path, instead of the catalog
//	text              wants the assembled instructions, instead of the catalog
//
// ACP_AGENT_UPDATE=1 writes what was found.
func TestA25_Archives(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, file := range archives {
		t.Run("A25/"+strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			archive := txtar.Parse(text)
			got := found(t, archive)
			last := &archive.Files[len(archive.Files)-1]
			require.Equal(t, "want", last.Name, "the last file of the archive says what is found")
			if os.Getenv("ACP_AGENT_UPDATE") != "" {
				last.Data = []byte(got)
				require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o644))
			}
			require.Equal(t, string(last.Data), got)
		})
	}
}

// found is what is found in an archive.
func found(t *testing.T, archive *txtar.Archive) string {
	top := tree(t, nil)
	for _, f := range archive.Files[:len(archive.Files)-1] {
		write(t, filepath.Join(top, filepath.FromSlash(f.Name)), string(f.Data))
	}
	var o discovery.Options
	var roots, touched []string
	text := false
	for line := range strings.SplitSeq(string(archive.Comment), "\n") {
		word := strings.Fields(line)
		if len(word) == 0 || word[0] == "#" {
			continue
		}
		path := ""
		if len(word) > 1 {
			path = filepath.Join(top, filepath.FromSlash(word[1]))
		}
		switch word[0] {
		case "roots":
			for _, root := range word[1:] {
				roots = append(roots, filepath.Join(top, root))
				require.NoError(t, os.MkdirAll(filepath.Join(top, root), 0o755))
			}
		case "link":
			link(t, strings.ReplaceAll(word[2], "TOP", top), path)
		case "hex":
			raw, err := hex.DecodeString(word[2])
			require.NoError(t, err)
			write(t, path, string(raw))
		case "size":
			write(t, path, strings.Repeat("x", number(t, word[2])))
		case "max":
			discovery.SetLimit(&o, word[1], number(t, word[2]))
		case "touch":
			touched = append(touched, path)
		case "text":
			text = true
		default:
			t.Fatalf("no such instruction: %s", line)
		}
	}
	c := scan(t, o, roots...)
	switch {
	case text:
		return strings.ReplaceAll(c.Instructions(discovery.EveryRoot).String(), top, "TOP")
	case len(touched) > 0:
		var b strings.Builder
		for _, path := range touched {
			list, err := c.For(t.Context(), path)
			require.NoError(t, err)
			b.WriteString("touch " + relative(path, top) + "\n")
			for _, a := range list {
				b.WriteString(line(a, top))
			}
		}
		return b.String()
	}
	return summary(c, top)
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

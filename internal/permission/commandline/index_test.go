package commandline

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// index returns the path of the index of the root.
func (p place) index() string { return filepath.Join(p.root, ".git", "index") }

// edit replaces a name in the index by another of the same length, as git itself never writes it.
func (p place) edit(from, to string) {
	p.t.Helper()
	require.Len(p.t, to, len(from))
	content, err := os.ReadFile(p.index())
	require.NoError(p.t, err)
	require.True(p.t, bytes.Contains(content, []byte(from)), "the index has no %q", from)
	require.NoError(p.t, os.WriteFile(p.index(), bytes.ReplaceAll(content, []byte(from), []byte(to)), 0o600))
}

// track adds a name to the index that has another content than the file outside.
func (p place) track(name string) {
	p.t.Helper()
	blob, err := exec.CommandContext(p.t.Context(), "git", "-C", p.root, "rev-parse", "HEAD:a.txt").Output()
	require.NoError(p.t, err)
	p.git(p.root, "update-index", "--add", "--cacheinfo", "100644,"+strings.TrimSpace(string(blob))+","+name)
}

// Whatever makes git open a file outside is not understood. prints are commands that print it.
func TestIndexLeadsOut(t *testing.T) {
	for name, c := range map[string]struct {
		plant  func(p place)
		prints []string
	}{
		"above": {func(p place) {
			p.track("Aa/out/secret.txt")
			p.edit("Aa/out/secret.txt", "../out/secret.txt")
		}, []string{"git diff", "git grep needle", "git diff -- ."}},
		"above, in a folder": {func(p place) {
			p.track("sub/aa/aa/out/secret.txt")
			p.edit("sub/aa/aa/out/secret.txt", "sub/../../out/secret.txt")
		}, []string{"git diff", "git grep needle"}},
		"above, shortened": {func(p place) {
			p.git(p.root, "update-index", "--index-version", "4")
			p.track("Aa/out/secret.txt")
			p.edit("Aa/out/secret.txt", "../out/secret.txt")
		}, []string{"git diff", "git grep needle"}},
		"above, with more flags": {func(p place) {
			p.track("Aa/out/secret.txt")
			p.git(p.root, "update-index", "--skip-worktree", "a.txt")
			p.edit("Aa/out/secret.txt", "../out/secret.txt")
		}, []string{"git diff", "git grep needle"}},
		"absolute": {func(p place) {
			out := filepath.Join(p.top, "out", "secret.txt")
			p.track("a" + out[1:])
			p.edit("a"+out[1:], out)
		}, []string{"git diff", "git grep needle"}},
		"folder that is a link": {func(p place) {
			p.write("tracked/secret.txt", "x\n")
			p.git(p.root, "add", "tracked")
			p.git(p.root, "commit", "-qm", "Two")
			require.NoError(p.t, os.RemoveAll(filepath.Join(p.root, "tracked")))
			require.NoError(p.t, os.Symlink("../out", filepath.Join(p.root, "tracked")))
		}, []string{"git grep needle"}},
		"folder above that is a link": {func(p place) {
			p.write("tracked/out/secret.txt", "x\n")
			p.git(p.root, "add", "tracked")
			require.NoError(p.t, os.RemoveAll(filepath.Join(p.root, "tracked")))
			require.NoError(p.t, os.Symlink("..", filepath.Join(p.root, "tracked")))
		}, []string{"git grep needle"}},
		"its own folder": {func(p place) {
			p.track("agit/config")
			p.edit("agit/config", ".git/config")
		}, []string{"git diff", "git grep core"}},
		"split": {func(p place) { p.git(p.root, "update-index", "--split-index") }, nil},
		"sparse": {func(p place) {
			p.git(p.root, "sparse-checkout", "set", "--cone", "--sparse-index", "sub2")
		}, nil},
		"no index": {func(p place) { require.NoError(p.t, os.WriteFile(p.index(), []byte("DIRX"), 0o600)) }, nil},
		"table": {func(p place) {
			p.git(p.root, "-c", "index.threads=4", "-c", "index.recordEndOfIndexEntries=true", "add", ".")
		}, nil},
		"a length":   {func(p place) { p.edit("\x00\x05a.txt", "\x00\x06a.txt") }, nil},
		"a zero":     {func(p place) { p.edit("\x00\x05a.txt", "\x00\x05a\x00txt") }, nil},
		"an empty":   {func(p place) { p.edit("sub/b.txt", "sub//.txt") }, nil},
		"a dot":      {func(p place) { p.edit("sub2/1.txt", "sub2/./txt") }, nil},
		"many":       {func(p place) { p.count(1 << 31) }, nil},
		"not enough": {func(p place) { p.count(1) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			_, err := Understand(p.ws, p.root, "git diff")
			require.NoError(t, err)
			c.plant(p)
			for _, line := range c.prints {
				output, _ := p.run(p.root, line)
				assert.True(t, strings.Contains(output, canary) || strings.Contains(output, "[core]"),
					"%s prints nothing outside here: %s", line, output)
			}
			for _, line := range []string{"git diff", "git grep needle", "git status", "git ls-files", "git log -p"} {
				_, err := Understand(p.ws, p.root, line)
				require.Error(t, err, line)
			}
		})
	}
}

// count changes how many entries the index says it has.
func (p place) count(n uint32) {
	p.t.Helper()
	content, err := os.ReadFile(p.index())
	require.NoError(p.t, err)
	binary.BigEndian.PutUint32(content[8:], n)
	require.NoError(p.t, os.WriteFile(p.index(), content, 0o600))
}

// The names in an index are those that git lists.
func TestTrackedFiles(t *testing.T) {
	for name, prepare := range map[string]func(p place){
		"plain": func(place) {},
		"flags": func(p place) {
			p.write("later", "x\n")
			p.git(p.root, "add", "-N", "later")
			p.git(p.root, "update-index", "--skip-worktree", "a.txt")
		},
		"long names": func(p place) {
			long := strings.Repeat(strings.Repeat("long", 50)+"/", 15)
			for i := range 9 {
				p.track(long + strings.Repeat("x", i+1))
			}
			p.track(long + strings.Repeat("y", 1000))
		},
		"untracked": func(p place) { p.git(p.root, "update-index", "--untracked-cache") },
		"conflict": func(p place) {
			p.git(p.root, "checkout", "-q", "-b", "x")
			p.write("a.txt", "x\n")
			p.git(p.root, "commit", "-qam", "X")
			p.git(p.root, "checkout", "-q", "-")
			p.write("a.txt", "y\n")
			p.git(p.root, "commit", "-qam", "Y")
			_, _ = p.run(p.root, "git -c user.name=u -c user.email=u@x merge x")
		},
		"empty": func(p place) { p.git(p.root, "rm", "-qr", "--cached", ".") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			prepare(p)
			listed, err := exec.CommandContext(t.Context(), "git", "-C", p.root, "ls-files", "-z", "--stage").Output()
			require.NoError(t, err)
			var want []string
			for entry := range strings.SplitSeq(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
				if _, name, found := strings.Cut(entry, "\t"); found {
					want = append(want, name)
				}
			}
			got, err := trackedFiles(p.ws, p.root)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

// FuzzIndex reads any index: no name leads out.
func FuzzIndex(f *testing.F) {
	p := newPlace(f)
	content, err := os.ReadFile(p.index())
	require.NoError(f, err)
	f.Add(content)
	f.Fuzz(func(t *testing.T, content []byte) {
		names, err := namesInIndex(content)
		if err != nil {
			return
		}
		for _, name := range names {
			require.True(t, filepath.IsLocal(name), name)
		}
	})
}

// Variables with which git uses other files are not overlooked.
func TestGitVariables(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"GIT_INDEX_FILE", "GIT_DIR", "GIT_OBJECT_DIRECTORY"} {
		t.Setenv(name, filepath.Join(p.top, "out"))
		_, err := Understand(p.ws, p.root, "git status")
		require.ErrorContains(t, err, name)
		t.Setenv(name, "")
	}
}

package mcpserver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
)

const atOnce = 25

// While names are swapped, no tool reads or changes anything outside, and every call is answered.
//
// Clause C5.
func TestToolsWhileNamesAreSwapped(t *testing.T) {
	for name, swap := range map[string]struct {
		good, bad string
		make      func(t *testing.T, top, bad string)
	}{
		"a directory with a link out": {"A/d", "A/l", linkTo("out")},
		"a file with a link out":      {"A/d/e/f", "A/d/e/l", linkTo("out/e/f")},
		"a file with a fifo": {"A/d/e/f", "A/d/e/fifo", func(t *testing.T, _, bad string) {
			require.NoError(t, unix.Mkfifo(bad, 0o600))
		}},
		"a root with a link out": {"A", "l", linkTo("out")},
	} {
		t.Run(name, func(t *testing.T) {
			top := tree(t, map[string]string{
				"A/d/e/f": "fine", "A/f": "fine", "B/f": "fine",
				"out/d/e/f": "SECRET", "out/e/f": "SECRET", "out/f": "SECRET",
			})
			good, bad := filepath.Join(top, swap.good), filepath.Join(top, swap.bad)
			swap.make(t, top, bad)
			before := containmenttest.Picture(t, filepath.Join(top, "out"), nil)
			p := serveWriting(t, Options{Roots: rootSet(t, filepath.Join(top, "A"),
				filepath.Join(top, "B"))}, func(path string) bool {
				return !filepath.IsAbs(path) || strings.HasPrefix(path, top)
			})
			stop := exchanging(t, good, bad)
			defer stop()
			paths := []string{"d/e/f", "d/e", "d", ".", "d/e/new", "d/e/../../f", "../A/d/e/f"}
			for sent := 0; sent < volume.Of(250, 2_500); sent += atOnce {
				for i := range atOnce {
					w := wiredTools[(sent+i)%len(wiredTools)]
					p.send(w.tool, w.arguments(paths[(sent+i)/len(wiredTools)%len(paths)]))
				}
				for range atOnce {
					answer := p.until(func(m message) bool { return m.Method == "" })
					require.NotContains(t, answer.line, "SECRET")
				}
			}
			stop()
			require.Equal(t, before, containmenttest.Picture(t, filepath.Join(top, "out"), nil))
		})
	}
}

func linkTo(target string) func(t *testing.T, top, bad string) {
	return func(t *testing.T, top, bad string) {
		require.NoError(t, os.Symlink(filepath.Join(top, target), bad))
	}
}

// exchanging exchanges two names repeatedly until stop is called.
func exchanging(t *testing.T, one, other string) (stop func()) {
	t.Helper()
	exchange := func() error {
		return unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
	}
	if err := exchange(); errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		t.Skip("this file system cannot exchange names:", err)
	}
	var stopped atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stopped.Load() {
			_ = exchange()
		}
	}()
	return func() {
		stopped.Store(true)
		<-done
	}
}

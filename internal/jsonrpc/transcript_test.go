package jsonrpc_test

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

var update = flag.Bool("update", false, "rewrite the expected lines of the transcripts")

// TestTranscripts plays testdata/*.txtar: the lines of each "client" section are sent one by one, and
// what comes back until all is quiet again is the "server" section after it. A file is named for its clause.
// In a client line «…» stands for the bytes that a Go string literal "…" means.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(strings.Replace(name, "-", "/", 1), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			want := txtar.Format(archive)
			played := play(t, archive)
			if *update {
				require.NoError(t, os.WriteFile(file, txtar.Format(played), 0o644))
				return
			}
			require.Equal(t, string(want), string(txtar.Format(played)))
		})
	}
}

// play returns archive with the server sections that came.
func play(t *testing.T, archive *txtar.Archive) *txtar.Archive {
	played := &txtar.Archive{Comment: archive.Comment}
	synctest.Test(t, func(t *testing.T) {
		in, client := io.Pipe()
		var out output
		h := &responder{}
		conn := jsonrpc.NewConn(in, &out, h, jsonrpc.Options{MaxLine: 300})
		h.conn = conn
		served := make(chan error, 1)
		go func() { served <- conn.Serve(context.Background()) }()
		for _, section := range archive.Files {
			if section.Name != "client" {
				continue
			}
			for line := range bytes.Lines(section.Data) {
				_, err := client.Write(bytesOf(t, line))
				require.NoError(t, err)
				synctest.Wait()
			}
			played.Files = append(played.Files, section, txtar.File{Name: "server", Data: out.take()})
		}
		client.Close()
		require.NoError(t, <-served)
		played.Files = append(played.Files, txtar.File{Name: "server after the end", Data: out.take()})
	})
	return played
}

// bytesOf replaces «…» in a line.
func bytesOf(t *testing.T, line []byte) []byte {
	before, rest, found := bytes.Cut(line, []byte("«"))
	if !found {
		return line
	}
	literal, after, _ := bytes.Cut(rest, []byte("»"))
	return append(append(bytes.Clone(before), unquote(t, string(literal))...), bytesOf(t, after)...)
}

// output collects what is written.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) take() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := bytes.Clone(o.buf.Bytes())
	o.buf.Reset()
	return taken
}

func unquote(t *testing.T, literal string) string {
	t.Helper()
	s, err := strconv.Unquote(`"` + literal + `"`)
	require.NoError(t, err)
	return s
}

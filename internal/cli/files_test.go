package cli

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fullDisk is a file whose disk is full.
type fullDisk struct{ io.Writer }

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
func (fullDisk) Close() error              { return nil }

func TestFullDisk(t *testing.T) {
	var stderr strings.Builder
	f := &appendFile{file: fullDisk{}, flag: "trace", stderr: &stderr}
	for range 2 {
		_, err := f.Write([]byte("x"))
		require.Error(t, err)
	}
	require.Equal(t, "acp-agent: --trace is incomplete: "+syscall.ENOSPC.Error()+"\n",
		stderr.String())
	require.ErrorIs(t, f.err(), syscall.ENOSPC)
	f.file = nullFile{io.Discard}
	_, err := f.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, f.err())
}

type nullFile struct{ io.Writer }

func (nullFile) Close() error { return nil }

// A file that was renamed stays as it is, and what follows is in a new one.
func TestRotatedFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be renamed")
	}
	path := filepath.Join(t.TempDir(), "log")
	f, err := openAppend("log-file", path, io.Discard)
	require.NoError(t, err)
	defer f.close()
	write := func(text string) {
		f.checked = time.Time{}
		_, err := io.WriteString(f, text)
		require.NoError(t, err)
	}
	write("a")
	write("b")
	require.NoError(t, os.Rename(path, path+".1"))
	write("c")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	write("lost")
	require.NoError(t, os.Remove(path))
	write("d")
	for name, want := range map[string]string{path + ".1": "ab", path: "d"} {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, want, string(content))
	}
}

func TestTraceMasksMalformedMessages(t *testing.T) {
	const address = "https://user:pw@host.example/s3cret?token=hidden"
	for _, line := range []string{
		`{"params":{"url":["` + address + `"]}}`,
		`{"params":{"url":{"a":"` + address + `"}}}`,
		`{"params":{"args":"--server=` + address + `"}}`,
		`{"params":{"mcpServers":"` + address + `"}}`,
		`{"params":{"mcpServers":[{"server":"` + address + `"}]}}`,
		`{"params":{"url":"` + address + `"`,
		address,
	} {
		text := string(masked([]byte(line)))
		for _, secret := range []string{"pw", "s3cret", "hidden"} {
			require.NotContains(t, text, secret, line)
		}
	}
	plain := `{"text":"` + address + `"}`
	require.Equal(t, plain, string(masked([]byte(plain))), "content is not masked")
}

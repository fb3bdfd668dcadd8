package main

import (
	"io"
	"strings"
	"syscall"
	"testing"

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

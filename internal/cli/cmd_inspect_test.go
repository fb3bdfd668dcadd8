package cli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInspectServesThePageUntilItIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	printed, out := io.Pipe()
	root := newCommands(streams{in: strings.NewReader(""), out: out, err: io.Discard})
	root.SetArgs([]string{"inspect", "--state-dir", t.TempDir()})
	ended := make(chan error, 1)
	go func() {
		err := root.ExecuteContext(ctx)
		_ = out.CloseWithError(err)
		ended <- err
	}()
	url, err := bufio.NewReader(printed).ReadString('\n')
	require.NoError(t, err)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/\w+/\?token=\w+\n$`, url)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(strings.TrimSpace(url))
	require.NoError(t, err)
	page, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Contains(t, string(page), `<main id="main"`)
	stop()
	require.NoError(t, <-ended)
}

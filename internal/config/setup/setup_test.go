package setup

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

func TestAnswersAreNumbersOrNames(t *testing.T) {
	options := []option{
		{"zed", "Zed"}, {"vscode", "VS Code (ACP Client)"}, {"codecompanion", "Neovim (CodeCompanion)"},
		{"avante", "Neovim (avante)"}, {"pi", "pi (/usr/bin/pi)"}, {"pilot", "pilot"},
	}
	for line, want := range map[string][]int{
		"": nil, "1": {1}, "6": {6}, "0": nil, "7": nil, "-1": nil, "ZED": {1}, "z": {1}, "vs c": {2}, "acp": {2},
		"CodeC": {3}, "neovim": {3, 4}, "Neovim (a": {4}, "pi": {5}, "pil": {6}, "p": {5, 6}, "emacs": nil,
	} {
		require.Equal(t, want, find(options, line), line)
	}
}

// The last answer counts although the input ends without a newline behind it.
func TestLastAnswerWithoutNewline(t *testing.T) {
	in, typed, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	_, err = typed.WriteString("first\nlast")
	require.NoError(t, errors.Join(err, typed.Close()))
	r := &run{user: terminal.NewAsker(in, io.Discard)}
	for _, want := range []string{"first", "last"} {
		line, err := r.ask(t.Context(), "Which?", nil)
		require.NoError(t, err)
		require.Equal(t, want, line)
	}
	_, err = r.ask(t.Context(), "Which?", nil)
	require.ErrorContains(t, err, "the input ended")
}

// A relative folder starts in the working directory, as in a session.
func TestFoldersStartInTheWorkingDirectory(t *testing.T) {
	top := dirtest.New(t, "app/in/x", "", "in/x", "", "here/x", "")
	t.Chdir(top)
	app := filepath.Join(top, "app")
	separator := string(filepath.Separator)
	for path, want := range map[string]string{
		"in": app + separator + "in", "../here": app + separator + "../here", "here": "here",
		"nowhere": app + separator + "nowhere", top: top,
	} {
		require.Equal(t, want, fromCwd(app, path))
	}
	require.NoError(t, os.RemoveAll(filepath.Join(top, "here")))
	require.Equal(t, app+separator+"here", fromCwd(app, "here"), "what is missing is named as in a session")
}

// A server's models are offered besides the configured ones, with what the configuration needs.
func TestServersOfferModels(t *testing.T) {
	server, err := modelserver.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	url := server.URL() + "/v1"
	r := &run{}
	found, err := r.findModels(t.Context(), []localServer{{"the server", url}, {"none", "http://127.0.0.1:9/v1"}})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "scripted", found[0].model)
	require.Equal(t, "model scripted, offered by the server at "+url, found[0].title)
	r.config.Models = map[string]config.Model{"mine": {BaseURL: url, Name: new("scripted")}}
	found, err = r.findModels(t.Context(), []localServer{{"the server", url}})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "mine", found[0].model)
}

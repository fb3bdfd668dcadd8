package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/volume"
)

func TestModelKey(t *testing.T) {
	t.Run("B1 a variable is read whenever the key is needed", func(t *testing.T) {
		key := Model{KeyEnv: "TEST_MODEL_KEY"}.key("", nil)
		_, err := key(t.Context(), "")
		require.EqualError(t, err, "the environment variable TEST_MODEL_KEY is not set; "+
			"editors started from a desktop do not have the variables of your shell")
		t.Setenv("TEST_MODEL_KEY", " sk-1\n")
		got, err := key(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, "sk-1", got)
		t.Setenv("TEST_MODEL_KEY", "sk 1")
		_, err = key(t.Context(), "")
		require.EqualError(t, err, "the environment variable TEST_MODEL_KEY is not a key: "+
			"it has spaces or special characters")
	})
	require.Nil(t, Model{}.key("", nil))
	if runtime.GOOS == "windows" {
		t.Skip("the commands of this test need a POSIX shell")
	}

	// The command's output changes from run to run.
	const counting = `echo x >>runs; echo "sk-$(($(wc -l <runs)))"; echo "login: me"`
	command := func(t *testing.T, script string) (
		key func(context.Context, string) (string, error), runs func() int,
	) {
		dir := t.TempDir()
		m := Model{KeyCommand: []string{"sh", "-c", script}}
		return m.key(dir, []string{"OTHER_MODEL_KEY"}), func() int {
			text, err := os.ReadFile(filepath.Join(dir, "runs"))
			if !errors.Is(err, os.ErrNotExist) {
				require.NoError(t, err)
			}
			return strings.Count(string(text), "x")
		}
	}
	t.Run("B1 a command does not get the other models' keys", func(t *testing.T) {
		t.Setenv("OTHER_MODEL_KEY", "sk-other")
		key, _ := command(t, `echo "sk-1$OTHER_MODEL_KEY"`)
		got, err := key(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, "sk-1", got)
	})
	t.Run("B1 a command runs once, and again after its key was rejected", func(t *testing.T) {
		key, runs := command(t, counting)
		require.Zero(t, runs())
		for range 2 {
			got, err := key(t.Context(), "")
			require.NoError(t, err)
			require.Equal(t, "sk-1", got)
		}
		got, err := key(t.Context(), "sk-1")
		require.NoError(t, err)
		require.Equal(t, "sk-2", got)
		got, err = key(t.Context(), "sk-1")
		require.NoError(t, err)
		require.Equal(t, "sk-2", got, "another session has replaced it")
		require.Equal(t, 2, runs())
	})
	t.Run("B1 a command has no input, and its output stays out of errors", func(t *testing.T) {
		const failed = "the keyCommand failed: "
		const retry = "; run it in a terminal to see why"
		const printed = "the first line that the keyCommand printed is "
		for script, message := range map[string]string{
			"cat; echo sk-secret >&2; exit 3": failed + "exit status 3" + retry,
			"cat":                             printed + "empty instead of a key",
			"echo sk-secret; exit 1":          failed + "exit status 1" + retry,
			"echo the key is sk-secret": printed + "not a key: it has spaces or special " +
				"characters",
		} {
			key, _ := command(t, script)
			_, err := key(t.Context(), "")
			require.EqualError(t, err, message)
		}
		key := Model{KeyCommand: []string{"no-such-program"}}.key(t.TempDir(), nil)
		_, err := key(t.Context(), "")
		require.ErrorContains(t, err,
			`the keyCommand failed: cannot start "no-such-program": executable file not found`)
	})
	t.Run("a command ends with the turn that needs it, and runs again", func(t *testing.T) {
		key, runs := command(t,
			"echo x >>runs; [ $(wc -l <runs) = 2 ] && exec echo sk-2; exec sleep 1000")
		ctx, cancel := context.WithCancelCause(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := key(ctx, "")
			failed <- err
		}()
		started := func() bool { return runs() == 1 }
		require.Eventually(t, started, volume.Patience, 10*time.Millisecond)
		cancel(errors.New("turn cancelled"))
		require.EqualError(t, <-failed, "turn cancelled")
		got, err := key(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, "sk-2", got)
	})
}

func TestModelHeaders(t *testing.T) {
	local := Model{BaseURL: "https://example.com/v1"}
	for name, test := range map[string]struct{ header, value, want string }{
		"a literal":      {"X-Title", "acp-agent", ""},
		"a variable":     {"api-key", "$TEST_HEADER", ""},
		"within a text":  {"Authorization", "Bearer ${TEST_HEADER}", ""},
		"a key":          {"api-key", "sk-1", "the value of api-key does not belong in this file"},
		"a bearer":       {"authorization", "Bearer x", "does not belong in this file"},
		"a line break":   {"X-Title", "a\nb: c", "the value of X-Title has line breaks"},
		"no name":        {"X Title", "a", `"X Title" is not the name of a header`},
		"host":           {"host", "a", "host is set by the program"},
		"no variable":    {"X-Title", "costs $5", "$ must precede the name of an environment variable"},
		"a dollar alone": {"api-key", "5$", "the value of api-key does not belong in this file"},
	} {
		t.Run(name, func(t *testing.T) {
			m := local
			m.Headers = map[string]string{test.header: test.value}
			err := m.Check("m")
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "sk-1")
		})
	}
	m := local
	m.Headers = map[string]string{"Authorization": "Bearer $TEST_HEADER"}
	require.Equal(t, []string{"TEST_HEADER"}, Config{Models: map[string]Model{"m": m}}.KeyVariables())
	t.Setenv("TEST_HEADER", "")
	_, err := m.headers()()
	require.EqualError(t, err, "the environment variable TEST_HEADER is not set")
	t.Setenv("TEST_HEADER", "a\nb")
	_, err = m.headers()()
	require.EqualError(t, err, "the environment variable TEST_HEADER has line breaks or control characters")
	t.Setenv("TEST_HEADER", "secret\n")
	headers, err := m.headers()()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"Authorization": "Bearer secret"}, headers)
	require.Nil(t, local.headers())

	m.BaseURL = "http://example.com/v1"
	require.ErrorContains(t, m.Check("m"), "unencrypted")
	m.BaseURL = "https://example.com/openai?api-version=1"
	require.NoError(t, m.Check("m"))
	m.BaseURL += "&api_key=1"
	require.ErrorContains(t, m.Check("m"), "baseURL must not have a key in its query")
	m.BaseURL = "https://example.com/v1/chat/completions/"
	require.ErrorContains(t, m.Check("m"), "baseURL must not end with /chat/completions/, which is")
}

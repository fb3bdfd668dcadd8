package cli

import (
	"bytes"
	"io"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/config"
)

func TestAgentsHelpExplainsEveryKey(t *testing.T) {
	var help bytes.Buffer
	code := run(t.Context(), []string{"agents", "--help"}, streams{out: &help, err: io.Discard})
	require.Zero(t, code)
	for _, key := range config.KeysOf(reflect.TypeFor[config.Agent]()) {
		require.Regexp(t, `\b`+key+`\b`, help.String())
	}
}

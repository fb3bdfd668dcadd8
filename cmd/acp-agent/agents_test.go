package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheHelpNamesEveryKey: what a configuration can say of an agent is in the help.
func TestTheHelpNamesEveryKey(t *testing.T) {
	var help bytes.Buffer
	code := run(t.Context(), []string{"agents", "--help"}, streams{out: &help, err: io.Discard})
	require.Zero(t, code)
	for _, key := range agentKeys() {
		require.Regexp(t, `\b`+key+`\b`, help.String())
	}
}

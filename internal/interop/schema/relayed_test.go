package schema_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestW1_WhatIsPassedOnMayBeOfTheUnstableSchemaAndOfAnAgentsOwn(t *testing.T) {
	s := load(t)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}}`,
		`{"jsonrpc":"2.0","method":"_own/method","params":{"x":1}}`,
		`{"jsonrpc":"2.0","id":2,"result":{"of":"its own"}}`,
	} {
		ours, another := s.Conversation(), s.Relayed()
		for _, request := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{}}`, `{"jsonrpc":"2.0","id":2,"method":"_own","params":{}}`,
		} {
			ours.Client(request)
			another.Client(request)
		}
		require.Error(t, ours.Agent(line))
		require.NoError(t, another.Agent(line))
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn","anything":1}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"usage":{}}}`,
		`{"jsonrpc":"2.0","method":"own/method","params":{}}`,
		`{"jsonrpc":"2.0","id":3,"result":{}}`,
	} {
		c := s.Relayed()
		c.Client(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{}}`)
		require.Error(t, c.Agent(line), line)
	}
}

package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// A client finds one method to sign in, which succeeds, and nothing else.
func TestNoSignIn(t *testing.T) {
	c := connect(t, acp.Options{})
	answer := c.try("initialize", `{"protocolVersion":1}`)
	require.Nil(t, answer.Error)
	var result struct {
		AuthMethods []struct{ ID, Name, Type string }
	}
	require.NoError(t, json.Unmarshal(answer.Result, &result))
	require.Len(t, result.AuthMethods, 1)
	method := result.AuthMethods[0]
	require.NotEmpty(t, method.Name)
	require.Empty(t, method.Type) // which means agent
	for request, params := range map[string]string{
		"authenticate": `{"methodId":"` + method.ID + `"}`, "logout": `{}`,
	} {
		answer := c.try(request, params)
		require.Nil(t, answer.Error, request)
		require.JSONEq(t, `{}`, string(answer.Result), request)
	}
	wrong := c.try("authenticate", `{"methodId":"other"}`).Error
	require.NotNil(t, wrong)
	require.Equal(t, jsonrpc.CodeInvalidParams, wrong.Code)
	require.Contains(t, wrong.Message, "no sign-in")
	require.Equal(t, jsonrpc.CodeMethodNotFound, c.try("_other", `{}`).Error.Code)
}

// naming is a backend that says how to sign in.
type naming struct {
	rejecting
	methods string
}

// Initialize implements [backend.Backend].
func (n *naming) Initialize(context.Context, backend.Raw, backend.Client) (backend.Info, error) {
	return backend.Info{Kind: "naming", Initialize: backend.Raw(`{` + n.methods + `}`)}, nil
}

// An agent that names no methods, with an empty list, is believed; one that does not say gets the
// method that needs no sign-in.
func TestNoMethodsToSignIn(t *testing.T) {
	const none = `[{"id":"none","name":"No sign-in","description":"acp-agent needs no account."}]`
	for methods, want := range map[string]string{
		`"authMethods":[]`:             `[]`,
		`"authMethods":null`:           none,
		`"authMethods":[{"id":"key"}]`: `[{"id":"key"}]`,
		``:                             none,
	} {
		c := connect(t, acp.Options{Backend: using(&naming{methods: methods})})
		var result struct{ AuthMethods json.RawMessage }
		require.NoError(t, json.Unmarshal(c.initialize(), &result))
		require.JSONEq(t, want, string(result.AuthMethods), methods)
		err := c.try("authenticate", `{"methodId":"none"}`).Error
		require.Equal(t, want == none, err == nil, "only what was offered succeeds: %s", methods)
	}
}

// A client that can open a terminal finds a second method, which the program is started with.
func TestSetupInTerminal(t *testing.T) {
	for name, test := range map[string]struct {
		capabilities string
		offered      bool
	}{
		"standard": {`{"auth":{"terminal":true}}`, true},
		"before":   {`{"_meta":{"terminal-auth":true}}`, true},
		"neither":  {`{"terminal":true,"auth":{}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, acp.Options{SetupArgs: []string{"setup"}})
			answer := c.try("initialize",
				`{"protocolVersion":1,"clientCapabilities":`+test.capabilities+`}`)
			require.Nil(t, answer.Error)
			var result struct {
				AuthMethods []struct {
					ID, Name, Type string
					Args           []string
				}
			}
			require.NoError(t, json.Unmarshal(answer.Result, &result))
			require.Equal(t, "none", result.AuthMethods[0].ID)
			if !test.offered {
				require.Len(t, result.AuthMethods, 1)
				return
			}
			require.Len(t, result.AuthMethods, 2)
			setup := result.AuthMethods[1]
			require.Equal(t, "terminal", setup.Type)
			require.Equal(t, []string{"setup"}, setup.Args)
			require.NotNil(t, c.try("authenticate", `{"methodId":"`+setup.ID+`"}`).Error)
		})
	}
}

// rejecting is a backend that knows authenticate, but names no methods.
type rejecting struct{ scripted }

// Call implements [backend.Backend].
func (r *rejecting) Call(_ context.Context, method string, _ backend.Raw) backend.Work {
	return func() (backend.Raw, error) { return nil, errors.New("rejected " + method) }
}

// The method that was added to an agent's initialize is not passed to the agent.
func TestNoSignInOfAgent(t *testing.T) {
	c := start(t, acp.Options{Backend: using(&rejecting{})})
	require.Nil(t, c.try("authenticate", `{"methodId":"none"}`).Error)
	require.NotNil(t, c.try("authenticate", `{"methodId":"other"}`).Error)
}

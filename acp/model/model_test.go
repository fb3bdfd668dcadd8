package model

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Clause B1.
func TestKeysAppearNowhere(t *testing.T) {
	keys := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"invalid key %s"}}`, r.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)
	e := open(t, setup{
		model: func(m *Model) {
			m.BaseURL = server.URL
			m.Key = func(_ context.Context, rejected string) (string, error) {
				if rejected != "" {
					return "sk-new-secret", nil
				}
				return "sk-old-secret", nil
			}
		},
	})
	r := e.prompt("Hello")
	require.Equal(t, "Bearer sk-old-secret", <-keys)
	require.Equal(t, "Bearer sk-new-secret", <-keys, "a rejected key is replaced")
	require.Contains(t, r.text(),
		"server rejected the key for the model scripted: invalid key Bearer [secret]; check the "+
			"key")
	for _, u := range r.updates {
		require.NotContains(t, string(u.Raw), "-secret")
	}
	require.NotContains(t, string(r.result), "-secret")
	for u, err := range e.setup.store.History(t.Context(), sessionstore.ID(e.id)) {
		require.NoError(t, err)
		require.NotContains(t, string(u.Raw), "-secret")
	}
}

// named gives the session's model a name, and with it the rules of a provider.
func named(name string) func(*Model) { return func(m *Model) { m.Name = name } }

// origin returns the origin of what the session's model says.
func (e *editor) origin() string {
	return llm.Model{BaseURL: e.model.URL() + "/v1", Name: modelserver.Model}.Origin()
}

// A tool of an MCP server that a provider does not accept as it is does not make requests fail.
//
// Clause B3.
func TestProviderTools(t *testing.T) {
	for name, format := range map[string]func(*Model){
		"Gemini 3": named(modelserver.Gemini3), "OpenAI": named(modelserver.GPT),
		"OpenAI, responses": func(m *Model) { m.API, m.Name = Responses, modelserver.GPT },
		"Claude":            func(m *Model) { anthropic(m); m.Name = modelserver.Claude },
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t, setup{model: format,
				servers: []sdk.McpServer{serverIn("awkward", "odd")}})
			e.answer(allowOnce)
			said := e.prompt("Look", modelserver.UseWith("odd__either", `{"a":"1"}`),
				modelserver.UseWith("odd__tree", `{"root":{}}`), modelserver.Say("Done."))
			require.Equal(t, []string{"got {\"a\":\"1\"}\n", "got {\"root\":{}}\n"}, e.results())
			if name == "Claude" { // takes any number
				require.Equal(t, "Done.", said.text())
				return
			}
			require.Len(t, e.last().Tools, 128)
			require.Regexp(t, `(?s)continues without \d+ tools of MCP servers, because its server `+
				`does not accept them or they do not fit into its context: odd__z\d+, `, said.text())
			require.Contains(t, e.last().Instructions, "You do not have these tools")
			require.Equal(t, modelserver.Done, e.prompt("Go on").text(), "told once")
		})
	}
}

// What belongs to one model is not sent to another one, or to one of this name somewhere else.
// Gemini is told that the calls are not its own.
//
// Clause B5.
func TestChangedProvider(t *testing.T) {
	e := open(t, setup{roots: []string{dirtest.New(t, "a.txt", "one\n")},
		model: named(modelserver.Gemini3)})
	e.prompt("Look", modelserver.Together(modelserver.Think("Hm."), modelserver.Read("a.txt")))
	e.setup.model = func(m *Model) { m.BaseURL += "/" }
	e.restart()
	e.goOn()
	e.setup.model = named("other")
	e.restart()
	e.goOn()
	body := string(e.last().Body)
	require.NotContains(t, body, "extra_content")
	require.NotContains(t, body, "call_1")
	require.Empty(t, e.last().Of(modelserver.Thought))
	e.prompt("Look", modelserver.Read("a.txt"))
	e.setup.model = named(modelserver.Gemini3)
	e.restart()
	e.goOn()
	body = string(backend.Encode(e.sent()))
	require.Contains(t, body, "signed call_1")
	require.Contains(t, body, "skip_thought_signature_validator")
}

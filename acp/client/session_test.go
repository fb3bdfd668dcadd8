package client_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/workspace"
)

// Clause P1.
func TestNotAdvertised(t *testing.T) {
	c, a := initialized(t, bare, client.Options{})
	ctx, two := t.Context(), client.Setup{Roots: roots(t, "/a", "/b")}
	for capability, ask := range map[string]func() error{
		"sessionCapabilities.additionalDirectories": func() error {
			_, err := c.NewSession(ctx, two)
			return err
		},
		"loadSession": func() error {
			_, err := c.LoadSession(ctx, "s", two)
			return err
		},
		"sessionCapabilities.resume": func() error {
			_, err := c.ResumeSession(ctx, "s", two)
			return err
		},
		"sessionCapabilities.fork": func() error {
			_, err := c.ForkSession(ctx, "s", two)
			return err
		},
		"sessionCapabilities.list": func() error {
			_, err := list(ctx, c, client.Query{})
			return err
		},
		"sessionCapabilities.close":  func() error { return c.CloseSession(ctx, "s") },
		"sessionCapabilities.delete": func() error { return c.DeleteSession(ctx, "s") },
	} {
		t.Run(capability, func(t *testing.T) {
			require.ErrorContains(t, ask(),
				"the agent does not support this: it does not advertise "+capability)
			require.Empty(t, a.take())
		})
	}
}

// Clause P1.
func TestNoAdditionalDirectories(t *testing.T) {
	c, a := initialized(t, bare, client.Options{})
	a.answer("session/new", `{"sessionId":"s"}`)
	_, err := c.NewSession(t.Context(), client.Setup{Roots: roots(t, "/a")})
	require.NoError(t, err)
	require.Equal(t, []string{`session/new {"cwd":"/a","mcpServers":[]}`}, a.take())
	_, err = c.NewSession(t.Context(), client.Setup{Roots: roots(t, "/a", "/b")})
	require.ErrorContains(t, err, "open the session on one directory")
}

// Clause P2.
func TestRootsAreNormalized(t *testing.T) {
	c, a := initialized(t, full, client.Options{})
	a.answer("session/new", `{"sessionId":"s","modes":1.0}`)
	s, err := c.NewSession(t.Context(),
		client.Setup{Roots: roots(t, "/a/", "/b", "/a", "/b/.", "/c")})
	require.NoError(t, err)
	require.Equal(t,
		client.Session{ID: "s", Result: json.RawMessage(`{"sessionId":"s","modes":1.0}`)}, s)
	require.Equal(t, []string{`session/new {"cwd":"/a","additionalDirectories":["/b","/c"],` +
		`"mcpServers":[]}`}, a.take())
}

// Clause P3.
func TestFullListInEveryRequest(t *testing.T) {
	c, a := initialized(t, full, client.Options{})
	ctx := t.Context()
	for method, ask := range map[string]func(context.Context, string, client.Setup) (client.Session,
		error){
		"session/load": c.LoadSession, "session/resume": c.ResumeSession,
		"session/fork": c.ForkSession,
	} {
		t.Run(method, func(t *testing.T) {
			a.answer(method, `{}`)
			want := "s"
			if method == "session/fork" {
				a.answer(method, `{"sessionId":"new"}`)
				want = "new"
			}
			s, err := ask(ctx, "s", client.Setup{Roots: roots(t, "/a")})
			require.NoError(t, err)
			require.Equal(t, want, s.ID)
			_, err = ask(ctx, "s", client.Setup{Roots: roots(t, "/a", "/b")})
			require.NoError(t, err)
			require.Equal(t, []string{
				method + ` {"sessionId":"s","cwd":"/a","additionalDirectories":[],"mcpServers":[]}`,
				method + ` {"sessionId":"s","cwd":"/a","additionalDirectories":["/b"],` +
					`"mcpServers":[]}`,
			}, a.take())
		})
	}
}

func TestListSessions(t *testing.T) {
	c, a := initialized(t, full, client.Options{})
	a.answer("session/list", `{"sessions":[{"sessionId":"a","cwd":"/a",`+
		`"additionalDirectories":[]},{"sessionId":"b","cwd":"/b","title":null}]}`)
	dir, err := workspace.ParseDir("/a")
	require.NoError(t, err)
	some, err := workspace.ParseDirs([]string{"/b"})
	require.NoError(t, err)
	for _, q := range []client.Query{
		{}, {Cwd: dir}, {Additional: &workspace.Dirs{}}, {Cwd: dir, Additional: &some},
	} {
		_, err := list(t.Context(), c, q)
		require.NoError(t, err)
	}
	require.Equal(t, []string{
		`session/list {}`,
		`session/list {"cwd":"/a"}`,
		`session/list {"additionalDirectories":[]}`,
		`session/list {"cwd":"/a","additionalDirectories":["/b"]}`,
	}, a.take())
	listed, err := list(t.Context(), c, client.Query{})
	require.NoError(t, err)
	require.Equal(t, []string{}, listed[0].AdditionalDirectories)
	require.Nil(t, listed[1].AdditionalDirectories)
}

func TestSessions(t *testing.T) {
	c, a := initialized(t, full, client.Options{})
	a.answerWith("session/list", func(params string) (string, error) {
		switch params {
		case `{}`:
			return `{"sessions":[{"sessionId":"1"},{"sessionId":"2"}],"nextCursor":"n"}`, nil
		case `{"cursor":"n"}`:
			return `{"sessions":[{"sessionId":"3"}],"nextCursor":"e"}`, nil
		}
		return "", jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "bad cursor")
	})
	listed, err := list(t.Context(), c, client.Query{})
	require.Equal(t, []client.SessionInfo{{ID: "1"}, {ID: "2"}, {ID: "3"}}, listed)
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, jsonrpc.CodeInvalidParams, refused.Code)
}

// list returns the sessions before the first error, and the error.
func list(
	ctx context.Context, c *client.Client, q client.Query,
) (all []client.SessionInfo, _ error) {
	for s, err := range c.Sessions(ctx, q) {
		if err != nil {
			return all, err
		}
		all = append(all, s)
	}
	return all, nil
}

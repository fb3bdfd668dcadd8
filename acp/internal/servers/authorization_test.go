package servers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/servers"
	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
)

// user is a session whose client takes URLs, and forms, in which the user leaves the defaults and
// accepts everything else.
type user struct {
	*host
	open     func(url string) (action string, err error)
	notified chan string
	asked    atomic.Value // the last message with a URL
}

// message returns the last message with a URL.
func (u *user) message() string {
	message, _ := u.asked.Load().(string)
	return message
}

func newUser(open func(url string) (string, error)) *user {
	return &user{host: &host{}, open: open, notified: make(chan string, 100)}
}

func (u *user) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if method != "elicitation/create" {
		return u.host.Call(ctx, method, params)
	}
	return func() (backend.Raw, error) {
		var p struct {
			Mode, ElicitationID, URL, Message string
			RequestedSchema                   struct {
				Properties map[string]struct{ Default any }
			}
		}
		if err := json.Unmarshal(params, &p); err != nil || p.Mode != "form" && (p.Mode != "url" || p.ElicitationID == "") || p.Message == "" {
			return nil, fmt.Errorf("invalid elicitation: %s: %w", params, err)
		}
		if p.Mode == "form" {
			content := make(map[string]any)
			for name, property := range p.RequestedSchema.Properties {
				if content[name] = property.Default; property.Default == nil {
					content[name] = true
				}
			}
			return json.Marshal(map[string]any{"action": "accept", "content": content})
		}
		u.asked.Store(p.Message)
		action, err := u.open(p.URL)
		return backend.Raw(`{"action":"` + action + `"}`), err
	}
}

func (u *user) Notify(_ context.Context, method string, _ backend.Raw) error {
	u.notified <- method
	return nil
}

// browse opens a page in a browser that signs in without asking.
func browse(url string) (action string, err error) {
	res, err := http.Get(url)
	if err != nil {
		return "", err
	}
	return "accept", res.Body.Close()
}

// noURLs is what a client answers that does not take URLs.
func noURLs(string) (string, error) {
	return "", &backend.Error{Code: -32601, Message: "the client does not offer it"}
}

// conformanceArguments returns the arguments that a scenario of the conformance suite wants a tool
// of the list to be called with.
func conformanceArguments(tool acpmcp.Tool, list []acpmcp.Tool) (backend.Raw, error) {
	switch tool.Remote {
	case "add_numbers":
		return backend.Raw(`{"a":5,"b":3}`), nil
	case "json_schema_echo":
		other := slices.IndexFunc(list, func(t acpmcp.Tool) bool { return t.Remote == "json_schema_2020_12_tool" })
		if other < 0 {
			return nil, errors.New("the tool with the schema to be echoed is not listed")
		}
		return json.Marshal(map[string]backend.Raw{"schema": list[other].Input})
	}
	var given struct {
		ToolCalls []struct {
			Name      string
			Arguments backend.Raw
		}
	}
	if scenario := os.Getenv("MCP_CONFORMANCE_CONTEXT"); scenario != "" {
		if err := json.Unmarshal([]byte(scenario), &given); err != nil {
			return nil, err
		}
	}
	for _, call := range given.ToolCalls {
		if call.Name == tool.Remote {
			return call.Arguments, nil
		}
	}
	return backend.Raw("{}"), nil
}

// runConformanceClient lists and calls the tools of the server at the URL that the conformance
// suite gives as the last argument.
func runConformanceClient() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	roots, err := workspace.NewRoots(os.TempDir(), nil)
	if err != nil {
		return err
	}
	w, err := workspace.Open(ctx, roots, workspace.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	set := servers.NewSet(make(chan struct{}, 8), mcpclient.Options{Logger: log, Wait: 2 * patience, Elicitation: []string{"form", "url"}})
	defer set.Close(context.Background())
	policy, err := conformancePolicy()
	if err != nil {
		return err
	}
	change, err := set.Prepare(w, []mcpclient.Config{{Name: "suite", Transport: acpmcp.HTTP, URL: os.Args[len(os.Args)-1], Policy: policy}})
	if err != nil {
		return err
	}
	u := newUser(browse)
	u.workspace = w
	set.Commit(change, u, nil)
	listings, err := set.List(ctx)
	if err != nil {
		return err
	}
	for l := range listings {
		if l.Err != nil {
			return l.Err
		}
		if os.Getenv("MCP_CONFORMANCE_SCENARIO") == "json-schema-ref-no-deref" {
			return nil // its tool cannot be called
		}
		for _, tool := range l.Tools {
			arguments, err := conformanceArguments(tool, l.Tools)
			if err != nil {
				return err
			}
			if result, err := set.Call(ctx, u, backend.ToolRequest{Name: tool.Name, Arguments: arguments}); err != nil || result.Failed {
				return fmt.Errorf("%s: %w: %s", tool.Name, err, textOf(result.Content))
			}
		}
	}
	return nil
}

// conformancePolicy returns what a user would configure for the scenario.
func conformancePolicy() (acpmcp.Policy, error) {
	switch os.Getenv("MCP_CONFORMANCE_SCENARIO") {
	case "auth/basic-cimd":
		return acpmcp.Policy{ClientID: "https://conformance-test.local/client-metadata.json"}, nil
	case "auth/pre-registration":
		var given struct {
			ID     string `json:"client_id"`
			Secret string `json:"client_secret"`
		}
		err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &given)
		return acpmcp.Policy{ClientID: given.ID, ClientSecret: given.Secret}, err
	default:
		return acpmcp.Policy{}, nil
	}
}

// The client prints finished if it has listed and called all tools.
const finished = "finished"

// conformance is a run of the scenarios of the conformance suite for clients.
type conformance struct {
	passed, failed []string // scenarios
	gaveUp         []string // those in which the client did not finish, or not without an error
}

// scenarioLine matches a scenario's line in the summary of the suite.
var scenarioLine = regexp.MustCompile(`(?m)^(\S) (\S+): (.*)$`)

// runConformance runs the client in all scenarios, or in those that more arguments of the suite
// choose.
func runConformance(t *testing.T, more ...string) conformance {
	t.Helper()
	node := npmtest.File(t, "testdata/node-acpx", "node-linux-*/bin/node")
	suite := npmtest.File(t, "testdata/node-mcp-clients", "conformance-next/dist/index.js")
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, node, append([]string{suite, "client", "--command",
		proctest.Executable(), "--suite", "all", "--output-dir", dir,
		"--timeout", fmt.Sprint((2 * patience).Milliseconds())}, more...)...)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), proctest.Env("conformance")...)
	out, err := cmd.CombinedOutput()
	printed := string(out)
	_, summary, found := strings.Cut(printed, "=== SUITE SUMMARY ===")
	require.True(t, found, "%v: %s", err, printed)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(printed)
		}
	})
	var c conformance
	for _, m := range scenarioLine.FindAllStringSubmatch(summary, -1) {
		switch m[1] {
		case "✓":
			c.passed = append(c.passed, m[2])
		case "✗":
			c.failed = append(c.failed, m[2])
		default:
			continue
		}
		said, err := filepath.Glob(filepath.Join(dir, m[2]+"-20*", "stdout.txt"))
		require.NoError(t, err)
		require.Len(t, said, 1, m[2])
		text, err := os.ReadFile(said[0])
		require.NoError(t, err)
		if string(text) != finished {
			c.gaveUp = append(c.gaveUp, m[2])
		}
	}
	require.Equal(t, len(c.gaveUp), strings.Count(printed, "Client exited with code 1\n"))
	require.Equal(t, len(c.gaveUp), strings.Count(printed, "Client exited with code"))
	require.NotContains(t, printed, "Client timed out")
	return c
}

// Each scenario is tried in the revision that the suite prefers, and with a full volume in all
// others too.
//
// Clause M4.
func TestClientConformance(t *testing.T) {
	auth := []string{"auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3", "auth/scope-from-www-authenticate",
		"auth/scope-from-scopes-supported", "auth/scope-omitted-when-undefined", "auth/scope-step-up", "auth/scope-retry-limit",
		"auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none",
		"auth/basic-cimd", "auth/pre-registration"}
	revisions := map[string]conformance{
		"2025-03-26": {passed: []string{"auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"}},
		"2025-06-18": {passed: []string{"initialize", "tools_call", "auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post",
			"auth/token-endpoint-auth-none"}},
		"2025-11-25": {
			passed: append([]string{"initialize", "tools_call", "sse-retry", "elicitation-sep1034-client-defaults",
				"json-schema-2020-12-preservation"}, auth...),
			gaveUp: []string{"auth/scope-retry-limit"},
		},
		"2026-07-28": {
			passed: append([]string{"tools_call", "request-metadata", "http-standard-headers", "http-custom-headers", "http-invalid-tool-headers",
				"sep-2322-client-request-state", "json-schema-ref-no-deref", "json-schema-2020-12-preservation",
				"auth/resource-mismatch", "auth/offline-access-scope", "auth/offline-access-not-supported",
				"auth/authorization-server-migration", "auth/iss-supported", "auth/iss-not-advertised", "auth/iss-supported-missing",
				"auth/iss-wrong-issuer", "auth/iss-unexpected", "auth/iss-normalized", "auth/metadata-issuer-mismatch"}, auth...),
			gaveUp: []string{"auth/scope-retry-limit", "auth/resource-mismatch",
				"auth/iss-supported-missing", "auth/iss-wrong-issuer", "auth/iss-unexpected", "auth/iss-normalized",
				"auth/metadata-issuer-mismatch"},
		},
	}
	// No revision requires these. Those that fail are for credentials that acp-agent cannot be
	// given.
	refused := []string{"auth/client-credentials-jwt", "auth/client-credentials-basic",
		"auth/enterprise-managed-authorization", "auth/wif-jwt-bearer"}
	all := conformance{passed: []string{"sep-2640-client-no-prefetch", "sep-2640-client-verify-digest",
		"sep-2640-client-verify-size", "sep-2640-client-verify-frontmatter"},
		failed: append([]string{"auth/dpop", "auth/dpop-nonce"}, refused...), gaveUp: refused}
	for _, want := range revisions {
		all.passed, all.gaveUp = append(all.passed, want.passed...), append(all.gaveUp, want.gaveUp...)
	}
	all.require(t)
	if volume.Full() {
		for revision, want := range revisions {
			want.require(t, "--spec-version", revision)
		}
	}
}

// require requires that a run of the suite ends like this. Names may be repeated in c.
func (c conformance) require(t *testing.T, more ...string) {
	t.Run(strings.Join(append([]string{"all"}, more...), " "), func(t *testing.T) {
		t.Parallel()
		got := runConformance(t, more...)
		once := func(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
		require.ElementsMatch(t, once(c.passed), got.passed)
		require.ElementsMatch(t, once(c.failed), got.failed, "if it passes, expect that")
		require.ElementsMatch(t, once(c.gaveUp), got.gaveUp)
	})
}

// signIn returns a server that requires a token, and a set that has it as server "r", before a
// server "other".
func signIn(t *testing.T, u *user) (*mcptest.SignIn, *fixture) {
	t.Helper()
	var initialized atomic.Int64
	s := mcptest.NewSignIn(t, mcp.NewStreamableHTTPHandler(mcptest.ToolServers("2025-11-25", &initialized), nil))
	f := newFixtureWith(t, make(chan struct{}, 1), mcpclient.Options{})
	f.commit(u, roottest.Open(t, folder(t)), mcpclient.Config{Name: "r", Transport: acpmcp.HTTP, URL: s.URL + "/mcp"}, mcptest.Self("other", "sdk"))
	return s, f
}

// commit is change for a client of its own.
func (f *fixture) commit(u *user, w *workspace.Workspace, configs ...mcpclient.Config) {
	f.t.Helper()
	c, err := f.Prepare(w, configs)
	require.NoError(f.t, err)
	u.workspace = w
	f.Commit(c, u, nil)
}

// page waits for a message with the address of an authorization page.
func page(t *testing.T, u *user) string {
	t.Helper()
	u.updates.WaitFor(t, "asks you to sign in at 127.0.0.1")
	_, address, _ := strings.Cut(strings.ReplaceAll(u.updates.String(), `\u0026`, "&"), "open <")
	address, _, _ = strings.Cut(address, ">")
	return address
}

// Clause M4.
func TestSigningIn(t *testing.T) {
	t.Run("by elicitation", func(t *testing.T) {
		u := newUser(browse)
		s, f := signIn(t, u)
		require.Equal(t, "{}", f.call("r.echo", "{}"))
		select {
		case method := <-u.notified:
			require.Equal(t, "elicitation/complete", method)
		case <-time.After(patience):
			t.Fatal("the client was not told that the user has signed in")
		}
		require.Equal(t, 1, s.Pages())
		require.NotContains(t, f.logs.String()+u.updates.String(), "tangerine")
		at := strings.TrimPrefix(s.URL, "http://")
		require.Equal(t, "MCP server r asks you to sign in at "+at+"; "+at+" then issues the access tokens for the server.", u.message())
		s.Revoke("invalid_grant")
		require.Equal(t, "{}", f.call("r.echo", "{}"), "the call waits for a new token")
		require.Equal(t, 2, s.Pages())
		require.Zero(t, f.Servers()[0].Restarts)
	})
	for _, code := range []string{"invalid_grant", "invalid_client", "unauthorized_client"} {
		t.Run("again after "+code, func(t *testing.T) {
			var declines atomic.Bool
			s, f := signIn(t, newUser(func(url string) (string, error) {
				if declines.Load() {
					return "decline", nil
				}
				return browse(url)
			}))
			s.Expire(1, false)
			require.Equal(t, "{}", f.call("r.echo", "{}"))
			require.Equal(t, "{}", f.call("r.echo", "{}"), "with a refreshed token")
			require.Equal(t, 1, s.Pages())
			s.Revoke(code)
			require.Equal(t, "{}", f.call("r.echo", "{}"))
			require.Equal(t, 2, s.Pages())
			require.Equal(t, 1, s.Refused(), "a token that was rejected is not tried again")
			declines.Store(true)
			s.Revoke(code)
			for range 3 {
				_, err := f.try("r.echo", "{}")
				require.ErrorContains(t, err, "signing in to it failed: the user declined")
			}
			require.Equal(t, 2, s.Refused())
			declines.Store(false)
			require.Equal(t, "{}", f.call("r.echo", "{}"), "the user is asked at each use")
		})
	}
	t.Run("again without a token to refresh", func(t *testing.T) {
		s, f := signIn(t, newUser(browse))
		s.Expire(11, true) // which is taken to be 10 seconds less
		require.Equal(t, "{}", f.call("r.echo", "{}"))
		s.Expire(0, true)
		require.Eventually(t, func() bool {
			_, err := f.try("r.echo", "{}")
			return err != nil || s.Pages() > 1
		}, patience, 20*time.Millisecond)
		require.Equal(t, "{}", f.call("r.echo", "{}"))
		require.Equal(t, 2, s.Pages())
	})
	t.Run("not while the server cannot refresh", func(t *testing.T) {
		s, f := signIn(t, newUser(browse))
		s.Expire(1, false)
		require.Equal(t, "{}", f.call("r.echo", "{}"))
		s.Revoke("temporarily_unavailable")
		_, err := f.try("r.echo", "{}")
		require.ErrorContains(t, err, "temporarily_unavailable")
		require.Equal(t, 1, s.Pages())
		s.Revoke("invalid_grant")
		require.Equal(t, "{}", f.call("r.echo", "{}"))
		require.Equal(t, 2, s.Pages())
	})
	t.Run("in the answer", func(t *testing.T) {
		u := newUser(noURLs)
		s, f := signIn(t, u)
		called := make(chan error, 1)
		go func() {
			_, err := f.Call(t.Context(), u, backend.ToolRequest{Name: "r.echo", Arguments: backend.Raw("{}")})
			called <- err
		}()
		address := page(t, u)
		require.Eventually(t, func() bool { return strings.Contains(f.Servers()[0].Waiting, "open <"+address+">") }, patience, time.Millisecond)
		require.Equal(t, "{}", f.call("other.echo", "{}"), "it does not keep others from starting")
		redirect, err := url.Parse(address)
		require.NoError(t, err)
		for _, wrong := range []string{"?code=x&state=x", "?code=x", "", "?state=" + redirect.Query().Get("state")} {
			res, err := http.Get(redirect.Query().Get("redirect_uri") + wrong)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, http.StatusNotFound, res.StatusCode, wrong)
		}
		_, err = browse(address)
		require.NoError(t, err)
		require.NoError(t, <-called)
		require.Equal(t, 1, s.Pages())
	})
	t.Run("declined", func(t *testing.T) {
		s, f := signIn(t, newUser(func(string) (string, error) { return "decline", nil }))
		_, err := f.try("r.echo", "{}")
		require.ErrorContains(t, err, "signing in to it failed: the user declined; try again, or give it an Authorization header")
		require.Zero(t, s.Pages())
	})
	t.Run("declined often", func(t *testing.T) {
		var asked atomic.Int64
		_, f := signIn(t, newUser(func(string) (string, error) {
			asked.Add(1)
			return "decline", nil
		}))
		for asked.Load() < 4 {
			_, err := f.try("r.echo", "{}")
			require.ErrorContains(t, err, "the user declined", "each use waits for the user")
			time.Sleep(time.Millisecond)
		}
	})
	t.Run("denied", func(t *testing.T) {
		s, f := signIn(t, newUser(browse))
		s.Deny("access_denied")
		_, err := f.try("r.echo", "{}")
		require.ErrorContains(t, err, `the authorization server reports "access_denied: "`)
		s.Deny("")
		require.Eventually(t, func() bool {
			answer, _ := f.try("r.echo", "{}")
			return answer == "{}"
		}, patience, time.Millisecond, "the next use tries again")
	})
	t.Run("the session ends", func(t *testing.T) {
		u := newUser(noURLs)
		_, f := signIn(t, u)
		_, err := f.List(t.Context())
		require.NoError(t, err)
		address, err := url.Parse(page(t, u))
		require.NoError(t, err)
		require.NoError(t, f.Close(t.Context()))
		_, err = browse(address.Query().Get("redirect_uri"))
		require.ErrorContains(t, err, "refused")
	})
	for name, address := range map[string]string{
		"no page of the web": "ftp://localhost/authorize", "no https": "http://example.com/authorize", "a script": "javascript:alert(1)",
		"markup": "https://example.com<b>/authorize", "a fragment": "http://localhost/authorize#",
		"our parameters": "http://localhost/authorize?redirect_uri=https://example.com", "a user": "http://accounts.example.com@localhost/authorize",
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(func(url string) (string, error) { panic(url) })
			s, f := signIn(t, u)
			s.SetPage(address)
			_, err := f.try("r.echo", "{}")
			require.ErrorContains(t, err, "401 Unauthorized")
			require.NotContains(t, u.updates.String(), "sign in")
		})
	}
}

// A server that refuses server/discover and then initialize asks once, even if the user is faster
// than the second request.
//
// Clause M4.
func TestSigningInIsAskedOncePerConnection(t *testing.T) {
	var asked, refused atomic.Int64
	redirects := make(chan string, 10)
	s, f := signIn(t, newUser(func(page string) (string, error) {
		asked.Add(1)
		address, err := url.Parse(page)
		if err == nil {
			address, err = url.Parse(address.Query().Get("redirect_uri"))
		}
		if err == nil {
			redirects <- address.Host
		}
		return "decline", err
	}))
	s.Refusing(func() {
		if refused.Add(1) != 2 {
			return
		}
		at := <-redirects
		for { // until the attempt has ended, which no longer listens then
			c, err := net.Dial("tcp", at)
			if err != nil {
				break
			}
			_ = c.Close()
		}
		time.Sleep(20 * time.Millisecond) // it has surely ended
	})
	_, err := f.try("r.echo", "{}")
	require.ErrorContains(t, err, "signing in to it failed: the user declined")
	require.EqualValues(t, 2, refused.Load())
	require.EqualValues(t, 1, asked.Load())
}

// Clause M4.
func TestNobodyIsAskedToSignIn(t *testing.T) {
	for name, change := range map[string]func(*mcpclient.Config){
		"with a header": func(c *mcpclient.Config) {
			c.Headers = []mcpclient.Pair{{Name: "authorization", Value: "Bearer expired"}}
		},
		"with a key":          func(c *mcpclient.Config) { c.URL += "?api_key=tangerine" },
		"with a password":     func(c *mcpclient.Config) { c.URL = strings.Replace(c.URL, "://", "://u:tangerine@", 1) },
		"that a folder named": func(c *mcpclient.Config) { c.File = "/a/.mcp.json" },
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(func(url string) (string, error) { panic(url) })
			s, f := signIn(t, u)
			c := mcpclient.Config{Name: "r", Transport: acpmcp.HTTP, URL: s.URL + "/mcp"}
			change(&c)
			f.commit(u, roottest.Open(t, folder(t)), c)
			_, err := f.try("r.echo", "{}")
			require.ErrorContains(t, err, "401 Unauthorized")
			require.NotContains(t, u.updates.String(), "sign in")
		})
	}
}

// Clause M4.
func TestSigningInAsAClient(t *testing.T) {
	const document = "https://example.com/client.json"
	unserved := "https://127.0.0.1:1/client.json"
	for name, c := range map[string]struct {
		policy    acpmcp.Policy
		documents bool
		want      string // the id of the client, "" if signing in fails
	}{
		"registered by itself":             {want: "test-client"},
		"of the user":                      {policy: acpmcp.Policy{ClientID: "mine", ClientSecret: "tangerine-x"}, want: "mine"},
		"of the user, no registration":     {policy: acpmcp.Policy{ClientID: "mine"}, documents: true, want: "mine"},
		"document":                         {policy: acpmcp.Policy{ClientID: document}, documents: true, want: document},
		"document that is not accepted":    {policy: acpmcp.Policy{ClientID: document}, want: "test-client"},
		"default":                          {policy: acpmcp.Policy{ClientDocument: unserved}, want: "test-client"},
		"default that is not served":       {policy: acpmcp.Policy{ClientDocument: unserved}, documents: true},
		"no client where none can be made": {documents: true},
	} {
		t.Run(name, func(t *testing.T) {
			var initialized atomic.Int64
			u := newUser(browse)
			s := mcptest.NewSignIn(t, mcp.NewStreamableHTTPHandler(mcptest.ToolServers("2025-11-25", &initialized), nil))
			if c.documents {
				s.OnlyDocuments()
			}
			f := newFixtureWith(t, make(chan struct{}, 1), mcpclient.Options{})
			f.commit(u, roottest.Open(t, folder(t)), mcpclient.Config{Name: "r", Transport: acpmcp.HTTP, URL: s.URL + "/mcp", Policy: c.policy})
			_, err := f.try("r.echo", "{}")
			require.Equal(t, c.want, s.Client())
			if c.want == "" {
				require.ErrorContains(t, err, "its authorization server registers no clients: register acp-agent there")
				require.Zero(t, s.Pages(), "the user is not sent to a page that will refuse them")
				return
			}
			require.NoError(t, err)
			require.NotContains(t, f.logs.String()+u.updates.String(), "tangerine")
		})
	}
}

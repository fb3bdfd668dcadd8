package mcpclient

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
)

const (
	// authorizationTimeout is how long the user has to authorize a server.
	authorizationTimeout = 5 * time.Minute
	// maxAuthorizations is the most times that the user is asked for one connection to a server.
	maxAuthorizations = 2
	redirectPath      = "/callback"
)

// authorizationError is returned when a server cannot be used because the user's authorization was
// not obtained.
type authorizationError struct{ cause error }

func (e *authorizationError) Error() string {
	return fmt.Sprintf("it answers 401 Unauthorized, and signing in to it failed: %v; try again, "+
		"or give it an Authorization header in the editor's configuration", e.cause)
}

func (e *authorizationError) Unwrap() error { return e.cause }

// signInError is returned for a connection that must be made again after an authorization.
type signInError struct{ obtaining *authorization }

func (*signInError) Error() string { return "it needs the user's authorization" }

var (
	errNotRegistered = errors.New("its authorization server registers no clients: register " +
		"acp-agent there with the redirect URI http://127.0.0.1" + redirectPath +
		", and give the server its clientId in the configuration file")
	errAskedAgain = errors.New("it asks for authorization again, right after it was given")
)

// mayAuthorize reports whether the user may be asked to sign in to the server. The user may not if
// credentials are configured, which must be corrected in the configuration; if the URL has
// credentials, which must not become part of the address of a page; or if a file in a root
// configures the server, because it must not send the user to a page.
func (c Config) mayAuthorize() bool {
	u, err := url.Parse(c.URL)
	if err != nil || c.Transport != acpmcp.HTTP || c.File != "" || u.User != nil {
		return false
	}
	for name := range u.Query() {
		if secret.IsCredential(name) {
			return false
		}
	}
	given := func(h Pair) bool { return strings.EqualFold(h.Name, "Authorization") }
	return !slices.ContainsFunc(c.Headers, given)
}

// authorizer obtains the user's authorization for a server and holds the tokens, in memory only,
// for all connections to it.
type authorizer struct {
	server *server

	mu      sync.Mutex
	handler *auth.AuthorizationCodeHandler // nil before the first authorization
	address string                         // the host and port that handler redirects to
	last    *authorization

	network tokenNetwork // of handler
}

// authorization is one attempt to get the user's authorization for a server.
type authorization struct {
	listener net.Listener
	asked    bool                    // the user is asked to open a page
	page     atomic.Pointer[url.URL] // nil if it is not known yet
	done     chan struct{}           // closed at the end
	err      error                   // set before done is closed
}

// token returns the value of the header for a request, "" before the first authorization and after
// the last one has ended.
func (a *authorizer) token(ctx context.Context) (string, error) {
	a.mu.Lock()
	handler := a.handler
	a.mu.Unlock()
	if handler == nil {
		return "", nil
	}
	source, err := handler.TokenSource(ctx)
	if err != nil || source == nil {
		return "", err
	}
	token, err := source.Token()
	switch {
	case err == nil:
		return "Bearer " + token.AccessToken, nil
	case isTemporary(err):
		return "", err
	}
	return "", nil // so that the server asks to sign in
}

// authorize obtains the authorization that a response asks for. It waits for the user only during
// calls: a connection that is being made is given up, and made again afterwards. Such a connection
// asks once: the SDK sends initialize if server/discover was refused, and the user may have
// declined in between.
func (c *connection) authorize(ctx context.Context, res *http.Response) error {
	a := c.server.authorizer
	now, err := a.token(ctx)
	if err == nil && now != "" && res.Request.Header.Get("Authorization") != now {
		return nil // there is a newer token already
	}
	connected := c.connected.Load()
	if needed := c.signIn.Load(); !connected && needed != nil {
		return needed
	}
	one, err := a.begin(res)
	if err != nil {
		return &authorizationError{err}
	}
	if connected {
		return one.wait(ctx)
	}
	needed := &signInError{one}
	c.signIn.Store(needed)
	return needed
}

// isUnauthorized reports whether the server asks for authorization, or for more scopes than the
// token has.
func isUnauthorized(res *http.Response) bool {
	if res.StatusCode == http.StatusUnauthorized {
		return true
	}
	lacks := func(c oauthex.Challenge) bool { return c.Params["error"] == "insufficient_scope" }
	return res.StatusCode == http.StatusForbidden &&
		res.Request.Header.Get("Authorization") != "" &&
		slices.ContainsFunc(bearerChallenges(res), lacks)
}

// bearerChallenges returns the challenges of a response that ask for a token, without those that
// cannot be parsed.
func bearerChallenges(res *http.Response) []oauthex.Challenge {
	all, _ := oauthex.ParseWWWAuthenticate(res.Header.Values("WWW-Authenticate"))
	return slices.DeleteFunc(all, func(c oauthex.Challenge) bool { return c.Scheme != "bearer" })
}

// begin starts to obtain the authorization that the server's response asks for, unless it is
// already being obtained.
func (a *authorizer) begin(res *http.Response) (*authorization, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last != nil {
		select {
		case <-a.last.done:
		default:
			return a.last, nil
		}
	}
	a.network.setServer(a.server.config.URL, res)
	listener, err := a.listenLocked()
	if err != nil {
		return nil, err
	}
	handler := a.handler
	one := &authorization{listener: listener, done: make(chan struct{})}
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // as much as there is
	refused := *res
	refused.Body = io.NopCloser(bytes.NewReader(body))
	spawned := a.server.set.spawn(func() {
		defer close(one.done)
		defer listener.Close()
		one.err = a.obtain(one, handler, &refused)
	})
	if !spawned {
		listener.Close()
		return nil, acpmcp.ErrClosed
	}
	a.last = one
	return one, nil
}

// obtain obtains an authorization. If the server does not offer authorization, the error is the one
// for its response.
func (a *authorizer) obtain(
	one *authorization, handler *auth.AuthorizationCodeHandler, res *http.Response,
) error {
	s := a.server
	ctx, cancel := context.WithTimeoutCause(s.ctx, authorizationTimeout,
		fmt.Errorf("nobody has signed in within %v", authorizationTimeout))
	defer cancel()
	authorize := func() error {
		return handler.Authorize(ctx, res.Request.WithContext(ctx), &http.Response{
			StatusCode: res.StatusCode, Header: res.Header, Body: http.NoBody,
		})
	}
	err := authorize()
	none, _ := a.network.registration()
	if err != nil && !one.asked && none && s.config.Policy.ClientID == "" {
		err = errNotRegistered
		if document := a.withDocument(ctx); document != nil {
			handler = document
			err = authorize()
		}
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &authorizationError{context.Cause(ctx)}
	case one.asked:
		return &authorizationError{err}
	}
	s.log.Debug("cannot sign in to an MCP server", "error", err)
	refused := refusal(res, readComplaint(res))
	if len(bearerChallenges(res)) > 0 {
		refused.text += "; acp-agent cannot sign in to it: " + err.Error()
	}
	return refused
}

// listenLocked listens for the redirect of a browser. It uses the same port each time if possible,
// because the tokens and scopes of a handler belong to one redirect URL.
func (a *authorizer) listenLocked() (net.Listener, error) {
	if a.handler != nil {
		if l, err := net.Listen("tcp", a.address); err == nil {
			return l, nil
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a.address = l.Addr().String()
	policy := a.server.config.Policy
	a.handler, err = a.newHandlerLocked(policy.ClientID, policy.ClientSecret)
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// newTokenSource returns a source of tokens that begins with t and refreshes it.
func (s *server) newTokenSource(ctx context.Context, c *oauth2.Config, t *oauth2.Token) (
	oauth2.TokenSource, error) {
	s.redactor.Add(c.ClientSecret)
	s.redactor.addToken(t) // the source may refresh it first
	return &knownTokens{source: c.TokenSource(ctx, t), redactor: s.redactor}, nil
}

// knownTokens keeps the tokens of a source out of logs and errors. Once the source has no more
// tokens, it is not asked again.
type knownTokens struct {
	source   oauth2.TokenSource
	redactor redactor

	mu  sync.Mutex
	end error // why there are no more tokens
}

// Token implements [oauth2.TokenSource].
func (s *knownTokens) Token() (*oauth2.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return nil, s.end
	}
	t, err := s.source.Token()
	if err == nil {
		s.redactor.addToken(t)
	} else if !isTemporary(err) {
		s.end = err
	}
	return t, err
}

// isTemporary reports whether a token may be refreshed later although it was not now.
func isTemporary(err error) bool {
	refusal, refused := errors.AsType[*oauth2.RetrieveError](err)
	if !refused {
		return errors.As(err, new(*url.Error)) // otherwise there is no token to refresh
	}
	status := refusal.Response.StatusCode
	return !isFinalStatus(status) || status == http.StatusRequestTimeout ||
		refusal.ErrorCode == "temporarily_unavailable" || refusal.ErrorCode == "server_error"
}

// addToken adds a token's secrets.
func (r redactor) addToken(t *oauth2.Token) {
	r.Add(t.AccessToken)
	r.Add(t.RefreshToken)
}

// fetchCode shows the user the authorization page and waits for the redirect.
func (a *authorizer) fetchCode(ctx context.Context, args *auth.AuthorizationArgs) (
	*auth.AuthorizationResult, error) {
	a.mu.Lock()
	s, one := a.server, a.last // of which there is one at a time
	a.mu.Unlock()
	one.asked = true
	page, err := authorizationPage(args.URL)
	if err == nil {
		err = a.network.checkNames(ctx, page)
	}
	if err != nil {
		return nil, err
	}
	tokens := a.network.bindTokens(page)
	received := make(chan url.Values, 1)
	web := &http.Server{
		Handler:           handleRedirect(one.listener.Addr().String(), page.Query().Get("state"), received),
		ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	showing, cancel := context.WithCancel(ctx)
	shown := make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() { _ = web.Serve(one.listener) })
	running.Go(func() { shown <- s.showPage(showing, one, page, tokens) })
	defer running.Wait()
	defer func() {
		cancel()
		// The browser gets its response.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTimeout)
		defer cancel()
		_ = web.Shutdown(ctx)
		_ = web.Close()
	}()
	for {
		select {
		case q := <-received:
			if code := q.Get("error"); code != "" {
				why := text.Truncate(code+": "+q.Get("error_description"), maxErrorText)
				return nil, fmt.Errorf("the authorization server reports %s", text.Quote(why))
			}
			s.redactor.Add(q.Get("code"))
			return &auth.AuthorizationResult{
				Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss"),
			}, nil
		case err := <-shown:
			if err != nil {
				return nil, err
			}
			shown = nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// handleRedirect handles the request of the browser that the authorization page redirects to this
// machine. It ignores everything but the first redirect that has the state, which no other page
// knows.
func handleRedirect(host, state string, received chan<- url.Values) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		q := req.URL.Query()
		if req.Method != http.MethodGet || req.Host != host || req.URL.Path != redirectPath ||
			q.Get("state") != state || q.Get("code") == "" && q.Get("error") == "" {
			http.NotFound(w, req)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		_, _ = io.WriteString(w, "You can close this page and go back to your editor.\n")
		select {
		case received <- q:
		default:
		}
	}
}

// showPage asks the user to open the authorization page. tokens is the host that will issue the
// tokens.
func (s *server) showPage(
	ctx context.Context, one *authorization, page *url.URL, tokens string,
) error {
	one.page.Store(page)
	host, err := s.set.openHost()
	if err != nil {
		return nil // the set is being closed
	}
	return host.SignIn(ctx, s.id(), page, tokens)
}

// OpenPage returns instructions for opening an authorization page, which redirects to this machine.
func OpenPage(page string) string {
	return "open <" + page + "> in a browser on the machine that acp-agent runs on"
}

// awaitAuthorization waits for an authorization before the next start of the server. Until then the
// server uses no resources. The error is errReconnect if the user has signed in. signIns is how many
// have been awaited since the server was last connected.
func (s *server) awaitAuthorization(one *authorization, signIns int) error {
	if signIns == maxAuthorizations {
		return &authorizationError{errAskedAgain}
	}
	s.enter(signingIn{one})
	defer s.enter(restarting)
	return cmp.Or(one.wait(s.ctx), errReconnect)
}

// wait waits until the authorization has been obtained.
func (one *authorization) wait(ctx context.Context) error {
	select {
	case <-one.done:
		return one.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

package mcptest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
)

// SignIn is an HTTP server that requires an access token, and its authorization server at the same
// address.
type SignIn struct {
	// URL is its address. Clients are served at any path below /mcp.
	URL string

	mu        sync.Mutex
	page      string // the address of the authorization page
	denial    string // sent to the redirect in place of a code
	challenge string // of the last page that was opened
	pages     int
	client    string // of the last page that was opened
	issued    int
	rejects   string // the grant type of the token requests that are rejected
	invalid   string // the error for token requests with a code or token that is not valid
	refused   int    // requests to refresh a token that were rejected
	life      int    // of the tokens that replace others, in seconds; 0 if they do not expire
	final     bool   // tokens cannot be refreshed
	documents bool   // clients are known by documents only
	refusing  func()
	secrets   []string
}

// secret returns the nth secret of a kind. The caller holds mu.
func (s *SignIn) secret(kind string, n int) string {
	secret := fmt.Sprintf("tangerine-%s-%d", kind, n)
	if !slices.Contains(s.secrets, secret) {
		s.secrets = append(s.secrets, secret)
	}
	return secret
}

// Secrets returns the authorization codes, code verifiers, access tokens and refresh tokens so far.
func (s *SignIn) Secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.secrets)
}

// NewSignIn serves a handler until the test ends, for those who have a token.
func NewSignIn(t testing.TB, behind http.Handler) *SignIn {
	t.Helper()
	s := &SignIn{invalid: "invalid_grant"}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.URL, s.page = server.URL, server.URL+"/authorize"
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if s.isSignedIn(r) {
			behind.ServeHTTP(w, r)
			return
		}
		s.mu.Lock()
		refusing := s.refusing
		s.mu.Unlock()
		if refusing != nil {
			refusing()
		}
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.URL+`/.well-known/oauth-protected-resource/mcp"`)
		http.Error(w, "sign in first", http.StatusUnauthorized)
	})
	for path, answer := range map[string]func(*http.Request) any{
		"/.well-known/oauth-protected-resource/mcp": func(*http.Request) any {
			return map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}}
		},
		"/.well-known/oauth-authorization-server": func(*http.Request) any { return s.metadata() },
		"/register": func(r *http.Request) any {
			var given map[string]any
			_ = json.NewDecoder(r.Body).Decode(&given)
			given["client_id"] = "test-client"
			return given
		},
		"/token": s.token,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			defer s.mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			if path == "/register" {
				w.WriteHeader(http.StatusCreated)
			}
			_ = json.NewEncoder(w).Encode(answer(r))
		})
	}
	mux.HandleFunc("/authorize", s.authorize)
	return s
}

// isSignedIn reports whether a request has the latest token.
func (s *SignIn) isSignedIn(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.issued > 0 && r.Header.Get("Authorization") == "Bearer "+s.secret("access", s.issued)
}

// metadata describes the authorization server. The caller holds mu.
func (s *SignIn) metadata() map[string]any {
	metadata := map[string]any{"issuer": s.URL, "authorization_endpoint": s.page, "token_endpoint": s.URL + "/token",
		"code_challenge_methods_supported": []string{"S256"}}
	if s.documents {
		metadata["client_id_metadata_document_supported"] = true
	} else {
		metadata["registration_endpoint"] = s.URL + "/register"
	}
	return metadata
}

// token answers a request for a token. The caller holds mu.
func (s *SignIn) token(r *http.Request) any {
	verifier := r.FormValue("code_verifier")
	if verifier != "" {
		s.secrets = append(s.secrets, verifier)
	}
	sum := sha256.Sum256([]byte(verifier))
	refreshes := r.FormValue("grant_type") == "refresh_token"
	valid := r.FormValue("code") == s.secret("code", s.pages) && base64.RawURLEncoding.EncodeToString(sum[:]) == s.challenge
	if refreshes {
		valid = r.FormValue("refresh_token") == s.secret("refresh", s.issued)
	}
	if !valid || r.FormValue("grant_type") == s.rejects {
		if refreshes {
			s.refused++
		}
		return map[string]any{"error": s.invalid, "error_description": "rejected " + r.Form.Encode()}
	}
	s.issued++
	token := map[string]any{"access_token": s.secret("access", s.issued), "token_type": "Bearer"}
	if !s.final {
		token["refresh_token"] = s.secret("refresh", s.issued)
	}
	switch {
	case !refreshes && !s.final:
		token["expires_in"] = 1 // so that it is refreshed before it is used
	case s.life > 0:
		token["expires_in"] = s.life
	}
	return token
}

// authorize is the authorization page: it sends the browser back with a code.
func (s *SignIn) authorize(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := url.Values{"state": {r.FormValue("state")}}
	s.pages++
	s.client = r.FormValue("client_id")
	s.challenge = r.FormValue("code_challenge")
	if s.denial != "" {
		q.Set("error", s.denial)
	} else {
		q.Set("code", s.secret("code", s.pages))
	}
	http.Redirect(w, r, r.FormValue("redirect_uri")+"?"+q.Encode(), http.StatusFound)
}

// SetPage sets the address of the authorization page, which is the server's own otherwise.
func (s *SignIn) SetPage(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page = address
}

// Refusing sets what is called before a request without a token is refused.
func (s *SignIn) Refusing(refusing func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusing = refusing
}

// OnlyDocuments makes the server register no clients: it accepts only documents about them.
func (s *SignIn) OnlyDocuments() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.documents = true
}

// Client returns the id of the client that opened the authorization page last.
func (s *SignIn) Client() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// Deny makes the authorization page redirect with an error.
func (s *SignIn) Deny(code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denial = code
}

// Reject makes the server reject token requests of a grant type, in a message that repeats the
// request.
func (s *SignIn) Reject(grant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejects = grant
}

// Revoke makes the server reject all tokens so far, and requests to refresh one with an error code.
func (s *SignIn) Revoke(code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued++
	s.invalid = code
}

// Expire makes tokens expire after some seconds. If they are final, they cannot be refreshed.
func (s *SignIn) Expire(life int, final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life, s.final = life, final
}

// Refused returns how many requests to refresh a token were rejected.
func (s *SignIn) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Pages returns how often the authorization page was opened.
func (s *SignIn) Pages() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pages
}

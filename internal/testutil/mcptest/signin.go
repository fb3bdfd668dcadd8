package mcptest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
)

// SignIn is an HTTP server that requires an access token, and its authorization server at the same address.
type SignIn struct {
	// URL is its address. Clients are served at any path below /mcp.
	URL string

	mu        sync.Mutex
	page      string // the address of the authorization page
	denial    string // sent to the redirect in place of a code
	challenge string // of the last page that was opened
	pages     int
	issued    int
}

// Token and Code return the nth access token and authorization code. All are secrets.
func (*SignIn) Token(n int) string { return fmt.Sprintf("tangerine-token-%d", n) }
func (*SignIn) Code(n int) string  { return fmt.Sprintf("tangerine-code-%d", n) }

// NewSignIn serves a handler until the test ends, for those who have a token.
func NewSignIn(t testing.TB, behind http.Handler) *SignIn {
	t.Helper()
	s := &SignIn{}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.URL, s.page = server.URL, server.URL+"/authorize"
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		signedIn := s.issued > 0 && r.Header.Get("Authorization") == "Bearer "+s.Token(s.issued)
		s.mu.Unlock()
		if signedIn {
			behind.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.URL+`/.well-known/oauth-protected-resource/mcp"`)
		http.Error(w, "sign in first", http.StatusUnauthorized)
	})
	answer := func(path string, v func(*http.Request) any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			defer s.mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			if path == "/register" {
				w.WriteHeader(http.StatusCreated)
			}
			_ = json.NewEncoder(w).Encode(v(r))
		})
	}
	answer("/.well-known/oauth-protected-resource/mcp", func(*http.Request) any {
		return map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}}
	})
	answer("/.well-known/oauth-authorization-server", func(*http.Request) any {
		return map[string]any{"issuer": s.URL, "authorization_endpoint": s.page, "token_endpoint": s.URL + "/token",
			"registration_endpoint": s.URL + "/register", "code_challenge_methods_supported": []string{"S256"}}
	})
	answer("/register", func(r *http.Request) any {
		var given map[string]any
		_ = json.NewDecoder(r.Body).Decode(&given)
		given["client_id"] = "test-client"
		return given
	})
	answer("/token", func(r *http.Request) any {
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if r.FormValue("code") != s.Code(s.pages) || base64.RawURLEncoding.EncodeToString(sum[:]) != s.challenge {
			return map[string]any{"error": "invalid_grant"}
		}
		s.issued++
		return map[string]any{"access_token": s.Token(s.issued), "token_type": "Bearer"}
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		q := url.Values{"state": {r.FormValue("state")}}
		s.pages++
		s.challenge = r.FormValue("code_challenge")
		if s.denial != "" {
			q.Set("error", s.denial)
		} else {
			q.Set("code", s.Code(s.pages))
		}
		http.Redirect(w, r, r.FormValue("redirect_uri")+"?"+q.Encode(), http.StatusFound)
	})
	return s
}

// SetPage sets the address of the authorization page, which is the server's own otherwise.
func (s *SignIn) SetPage(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page = address
}

// Deny makes the authorization page redirect with an error.
func (s *SignIn) Deny(code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denial = code
}

// Revoke makes the server reject all tokens so far.
func (s *SignIn) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued++
}

// Pages returns how often the authorization page was opened.
func (s *SignIn) Pages() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pages
}

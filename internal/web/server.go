// Package web has the pages on which people see their sessions in a browser: one of a machine's own
// sessions and traces, which only reads ([Server]), and one of a server ([ServePage]). The latter
// is a client of ACP over WebSocket besides, at the path /acp of the server that serves it, to
// answer questions and to send prompts. What was said is read from the store in both.
//
// A page is static: HTML, styles and modules of JavaScript below assets, which show what they get
// as JSON. They make elements with text in them and never parse HTML, so whatever a session
// contains is shown as text. The policy of the page allows nothing else.
//
// Requests hold what they answer with and nothing else: a conversation is read in pages from the
// store. The page reads the file of a trace itself, in parts.
package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

//go:embed assets
var assets embed.FS

// Options say what the page shows.
type Options struct {
	// Store has the sessions. Those of its owner are shown.
	Store sessionstore.Store
	// Traces are files that acp-agent wrote with --trace, and folders of such files.
	Traces []string
	// Workspace limits the folders in which instructions and skills are looked for.
	Workspace workspace.Options
	// Snapshots has what the folders of sessions had before. Without one, pages show what tool
	// calls reported.
	Snapshots worktree.Snapshots
	// Details returns what the record of a session says in a form of its agent. It may be nil.
	Details func(sessionstore.Session) Details
}

// Details has what a store does not know of a session.
type Details struct {
	// Given says how its agent was told about the folders, or "".
	Given string `json:"given,omitempty"`
	// From says for each root where it came from, or "".
	From []string `json:"from"`
	// Continue is the command that continues it.
	Continue string `json:"continue"`
}

// Server serves the page to whoever has its URL.
type Server struct {
	options Options
	host    string // of the address, with the port
	path    string // of the page
	token   string
	mux     *http.ServeMux
}

// New returns a server for a listener on a loopback address, such as "127.0.0.1:8080".
func New(address string, o Options) *Server {
	s := &Server{options: o, host: address, path: "/" + strings.ToLower(rand.Text()[:12]) + "/",
		token: rand.Text(), mux: http.NewServeMux()}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if !serveAsset(w, r, "index.html") {
			noPage(w)
		}
	})
	s.mux.HandleFunc("/api/{name}", o.Answer)
	s.mux.HandleFunc("/api/trace", o.serveTrace)
	return s
}

// URL returns the address of the page with the token. Whoever has it can read all sessions.
func (s *Server) URL() string { return "http://" + s.host + s.path + "?token=" + s.token }

// ServePage answers with a file of the page on which people follow the sessions of a server, answer
// questions and send prompts.
func ServePage(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "files of the page are only read", http.StatusMethodNotAllowed)
	case !serveAsset(w, r, "page.html"):
		http.NotFound(w, r)
	}
}

// serveAsset answers with a file of a page, whose first one is start, and reports whether there is
// such a file.
func serveAsset(w http.ResponseWriter, r *http.Request, start string) bool {
	return sendAsset(w, http.StatusOK, cmp.Or(strings.TrimPrefix(path.Clean(r.URL.Path), "/"), start))
}

// noPage answers for an address that was mistyped.
func noPage(w http.ResponseWriter) { sendAsset(w, http.StatusNotFound, "none.html") }

// sendAsset answers with a status and a file, and reports whether there is such a file.
func sendAsset(w http.ResponseWriter, status int, name string) bool {
	content, err := assets.ReadFile("assets/" + name)
	if name == "conversation.css" {
		content, err = []byte(conversation.Style), nil
	}
	if err != nil {
		return false
	}
	kind := map[string]string{".html": "html", ".css": "css", ".js": "javascript"}[path.Ext(name)]
	w.Header().Set("Content-Type", "text/"+kind+"; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(content) // fails only if the browser has left
	return true
}

// policy lets the page load its own files, and images that are part of a message.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// SetHeaders sets the headers of an answer that protect a page from other sites, and what it shows
// from being kept.
func SetHeaders(h http.Header) {
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer",
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		"Cache-Control": "no-store",
	} {
		h.Set(name, value)
	}
}

// ServeHTTP implements [http.Handler]. It serves requests that name this host and come from the
// page itself.
//
// The path of the page is random because the cookie is bound to it: cookies do not tell ports
// apart, so other servers of this machine would get it too.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	SetHeaders(w.Header())
	name, inPage := strings.CutPrefix(r.URL.Path, s.path)
	_, port, _ := strings.Cut(s.host[strings.LastIndexByte(s.host, ']')+1:], ":")
	switch {
	case r.Host != s.host && r.Host != "localhost:"+port:
		http.Error(w, "this is not the address of the page", http.StatusMisdirectedRequest)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page only reads", http.StatusMethodNotAllowed)
	case !inPage:
		noPage(w)
	case !sameOrigin(r) && name != "": // a link elsewhere may lead to the page
		http.Error(w, "only the page itself may send this request", http.StatusForbidden)
	case name == "" && r.URL.Query().Has("token"):
		s.enter(w, r)
	case strings.HasPrefix(name, "api/") && !s.knows(r):
		http.Error(w, "open the address that acp-agent inspect printed", http.StatusUnauthorized)
	default:
		http.StripPrefix(strings.TrimSuffix(s.path, "/"), s.mux).ServeHTTP(w, r)
	}
}

// sameOrigin reports whether a request comes from the page, or from the user.
func sameOrigin(r *http.Request) bool {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	return (origin == "" || origin == "http://"+r.Host) &&
		(site == "" || site == "same-origin" || site == "none")
}

// cookie is the name of the cookie with the token.
const cookie = "acp-agent-inspect"

// enter exchanges the token in the URL for a cookie.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	if !s.isToken(r.URL.Query().Get("token")) {
		http.Error(w, "this address is of another start of acp-agent inspect",
			http.StatusUnauthorized)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: s.token, Path: s.path, HttpOnly: true,
		SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, s.path, http.StatusSeeOther)
}

// knows reports whether a request has the cookie.
func (s *Server) knows(r *http.Request) bool {
	sent, err := r.Cookie(cookie)
	return err == nil && s.isToken(sent.Value)
}

func (s *Server) isToken(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1
}

// answers are what a page may ask for.
var answers = map[string]func(Options, context.Context, url.Values) (any, error){
	"sessions": Options.sessions, "facets": Options.facets, "search": Options.search,
	"session": Options.session, "context": Options.context, "prompt": Options.prompt,
	"pages": Options.pages, "entries": Options.entries, "changes": Options.changes,
	"traces": Options.traces,
}

// Answer answers what a page asks for by {name} in the path, with JSON.
func (o Options) Answer(w http.ResponseWriter, r *http.Request) {
	answer, ok := answers[r.PathValue("name")]
	if !ok {
		noPage(w)
		return
	}
	result, err := answer(o, r.Context(), r.URL.Query())
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(result) // fails only if the page has left
}

// fail answers with an error.
func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.As(err, new(*sessionstore.NotFoundError)), errors.Is(err, os.ErrNotExist):
		status = http.StatusNotFound
	case errors.As(err, new(*sessionstore.CursorError)), errors.Is(err, errParameter):
		status = http.StatusBadRequest
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text.Plain(err.Error())})
}

// errParameter is returned for a request that the page does not make.
var errParameter = errors.New("invalid parameter")

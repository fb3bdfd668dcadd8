package serve

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/serve/websocket"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/web"
)

// A browser sends its cookies to every port of the host, so a cookie alone may come from any
// program of this machine. What the page keeps in its storage, only pages of its origin can read,
// which has a port. So the page keeps a random proof and sends it with each request, and the token
// of a device is the cookie with the proof.
const (
	// cookiePrefix begins the names of cookies with tokens. Browsers accept these only
	// from this host and over TLS, or from a loopback address.
	cookiePrefix = "__Host-acp-agent-"
	// proofHeader is the header with the proof. Requests for connections cannot have it: they offer
	// the proof as a subprotocol that begins with proofProtocol.
	proofHeader   = "Acp-Agent-Proof"
	proofProtocol = "proof."
	// minProof is how long a proof is at least. The page makes UUIDs.
	minProof = 32
)

// addPage makes the server serve the page for browsers, whose connections are those of devices.
func (s *Server) addPage(mux *http.ServeMux) {
	mux.HandleFunc("/", web.ServePage)
	mux.HandleFunc("POST /pair", s.forPage(s.pairDevice))
	mux.HandleFunc("POST /me", s.forDevice(s.describeDevice))
	mux.HandleFunc("POST /api/{name}", s.forDevice(s.answerPage))
	mux.HandleFunc("POST /leave", s.forPage(s.removeDevice))
}

// forPage returns a handler for requests of the page itself.
func (s *Server) forPage(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !fromPage(r) {
			http.Error(w, "only the page itself may send this request", http.StatusForbidden)
			return
		}
		next(w, r)
	}
}

// withPage sets the headers that protect the page, and answers only requests to a name of the
// server: with the name of another site, that site's page could be this one.
func (s *Server) withPage(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		web.SetHeaders(w.Header())
		// With no-referrer browsers do not say either that it is this page that pairs a device.
		w.Header().Set("Referrer-Policy", "same-origin")
		if r.TLS == nil && !s.options.BehindProxy && !isLoopback(r.Host) {
			http.Error(w, "this is not the address of the page", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(hostPort string) bool {
	u, err := url.Parse("http://" + hostPort)
	return err == nil && secret.IsLoopback(u.Hostname())
}

// fromPage reports whether a request was sent by the page of this server. The page of a host that
// is reached without TLS is not this one, although some browsers send it the same cookies.
func fromPage(r *http.Request) bool {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	return (strings.HasPrefix(origin, "https://") || isLoopback(r.Host)) &&
		origin != "" && Origins{}.Admit(r) && (site == "" || site == "same-origin")
}

// pairDevice exchanges the code in a request for a cookie. Wrong codes fill no log, which package
// loglimit sees to, and find no right one: a code has 130 random bits.
func (s *Server) pairDevice(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	var request struct{ Code string }
	const most = 1 << 10
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, most)).Decode(&request)
	isJSON := r.Header.Get("Content-Type") == "application/json"
	if err != nil || !isJSON || len(proof(r)) < minProof {
		http.Error(w, "expected a code as JSON, and the header "+proofHeader+
			", which a proxy must pass on", http.StatusBadRequest)
		return
	}
	value, v, err := s.options.Accounts.pair(request.Code, proof(r))
	from := s.source(r)
	switch {
	case errors.Is(err, errInvalid):
		s.reject("rejected a code for a device", from)
		_ = pause.For(r.Context(), refusing-time.Since(begun))
		http.Error(w,
			"this code was used before or is too old: acp-agent tokens pair makes a new one",
			http.StatusUnauthorized)
	case err != nil:
		s.options.Log.Error("cannot pair a device", append(from, "error", err)...)
		http.Error(w, "the server cannot pair the device; its log says why",
			http.StatusServiceUnavailable)
	default:
		_ = s.forgetDevice(r) // it is logged, and nobody has its cookie any longer
		from = append(append(v.named(), from...), "role", v.Role, "label", v.Label)
		s.options.Log.Warn("paired a device", from...)
		s.options.Audit.Info("paired a device", from...)
		s.notifier.paired(v.Name, v.Token)
		http.SetCookie(w, deviceCookie(r, value, int(deviceLife/time.Second)))
		w.WriteHeader(http.StatusNoContent)
	}
}

// forDevice returns a handler for requests of the page on a device that is paired.
func (s *Server) forDevice(
	next func(http.ResponseWriter, *http.Request, visitor),
) http.HandlerFunc {
	return s.forPage(func(w http.ResponseWriter, r *http.Request) {
		v, err := s.who(r)
		if err == nil {
			if s.pace(v.Name).WaitN(r.Context(), pageUnits(r)) != nil {
				return // the page has left
			}
			v, err = s.who(r) // it may have been revoked meanwhile
		}
		switch {
		case errors.Is(err, errInvalid), errors.Is(err, errNobody):
			http.Error(w, "this browser is not paired", http.StatusUnauthorized)
		case err != nil:
			s.cannotRead(w, err)
		default:
			next(w, r, v)
		}
	})
}

// cannotRead answers a request for what the files of users and tokens say.
func (s *Server) cannotRead(w http.ResponseWriter, err error) {
	s.options.Log.Error("cannot read the devices of a user", "error", err)
	http.Error(w, "the server cannot read its devices; its log says why",
		http.StatusServiceUnavailable)
}

// answerPage answers what the page asks about the sessions of the user, whatever the device may do
// besides.
func (s *Server) answerPage(w http.ResponseWriter, r *http.Request, v visitor) {
	user, err := s.user(v.Name)
	if err != nil {
		s.cannotRead(w, err)
		return
	}
	web.Options{Store: user.Store, Workspace: user.Workspace}.Answer(w, r)
}

// describeDevice tells the page whose device it runs on, what that may do, in which folders the
// user's sessions must be, and which other devices the user has.
func (s *Server) describeDevice(w http.ResponseWriter, _ *http.Request, v visitor) {
	tokens, err := s.options.Accounts.Tokens(v.Name)
	if err != nil {
		s.cannotRead(w, err)
		return
	}
	others := []map[string]any{}
	for _, t := range tokens {
		if t.Kind == Device && t.ID != v.ID && t.validAt(time.Now()) {
			others = append(others, map[string]any{"id": t.ID, "label": t.Label, "role": t.Role,
				"created": t.Created})
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{ // fails only if the page has left
		"user": v.Name, "role": cmp.Or(v.Role, acp.RoleFull), "label": v.Label,
		"devices": others, "within": v.Within.Strings(),
	})
}

// removeDevice signs a device out.
func (s *Server) removeDevice(w http.ResponseWriter, r *http.Request) {
	if err := s.forgetDevice(r); err != nil {
		http.Error(w, "the server cannot remove the device; its log says why",
			http.StatusServiceUnavailable)
		return
	}
	http.SetCookie(w, deviceCookie(r, "", -1))
	w.WriteHeader(http.StatusNoContent)
}

// forgetDevice removes the device that the browser was until now, if any.
func (s *Server) forgetDevice(r *http.Request) error {
	v, err := s.device(r)
	if err != nil {
		return nil
	}
	if err := s.options.Accounts.RevokeToken(v.Name, v.ID); err != nil {
		s.options.Log.Error("cannot remove a device", "error", err)
		return err
	}
	s.options.Audit.Info("removed a device", append(v.named(), s.source(r)...)...)
	return nil
}

// deviceCookie returns the cookie of the device that sent a request.
func deviceCookie(r *http.Request, value string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: cookieName(proof(r)), Value: value, Path: "/", MaxAge: maxAge,
		Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

// cookieName returns the name of the cookie that belongs to a proof. The pages of two servers on
// one host have two cookies.
func cookieName(proof string) string { return cookiePrefix + tokenID(hashToken(proof)) }

// proof returns the proof that a request comes from the page, or "".
func proof(r *http.Request) string {
	return cmp.Or(r.Header.Get(proofHeader), websocket.Offered(r, proofProtocol))
}

// device returns the device that sent a request from the page.
func (s *Server) device(r *http.Request) (visitor, error) {
	sent, err := r.Cookie(cookieName(proof(r)))
	if err != nil || !fromPage(r) {
		return visitor{}, errInvalid
	}
	return s.options.Accounts.findToken(sent.Value+proof(r), Device)
}

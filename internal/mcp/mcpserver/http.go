package mcpserver

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
)

// sessionTimeout is how long an HTTP session lasts without a request.
const sessionTimeout = time.Hour

// Handler serves clients over streamable HTTP. It rejects requests without the token if
// [Options.Token] is set, requests to a loopback address that name another host than localhost, and
// requests from web pages of another origin. Shut the HTTP server down before calling
// [Server.Close].
func (s *Server) Handler() http.Handler {
	sessions := s.sdkHandler(mcp.StreamableHTTPOptions{SessionTimeout: sessionTimeout})
	// The SDK serves modern clients only without sessions, but legacy clients are asked for roots
	// in a session.
	stateless := s.sdkHandler(
		mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	byEra := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if mcproots.IsModern(r.Header.Get("Mcp-Protocol-Version")) {
			stateless.ServeHTTP(w, r)
		} else {
			sessions.ServeHTTP(w, r)
		}
	})
	sameOrigin := http.NewCrossOriginProtection().Handler(s.checkRequests(byEra))
	return s.requireToken(sameOrigin)
}

func (s *Server) sdkHandler(o mcp.StreamableHTTPOptions) http.Handler {
	o.MaxRequestBodyBytes = -1 // checkRequests has checked it
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		return s.forClient(&client{server: s, onlyDuringCalls: true, slots: s.httpSlots})
	}, &o)
}

// requireToken rejects requests without the token, if there is one.
func (s *Server) requireToken(next http.Handler) http.Handler {
	if s.options.Token == "" {
		return next
	}
	want := sha256.Sum256([]byte(s.options.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		// hashes have the same length, and are compared in constant time
		got := sha256.Sum256([]byte(token))
		if !strings.EqualFold(scheme, "Bearer") ||
			subtle.ConstantTimeCompare(got[:], want[:]) == 0 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="acp-agent"`)
			w.Header().Set("Connection", "close") // the body is not read
			http.Error(w, "a token is required: send the header Authorization: Bearer TOKEN with "+
				"the token that acp-agent mcp printed or was given", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// checkRequests reads the body of each request and passes on what the SDK can serve.
func (s *Server) checkRequests(next http.Handler) http.Handler {
	longest := int64(min(s.options.MaxMessage, s.limits.body))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, longest))
		if tooLong, ok := errors.AsType[*http.MaxBytesError](err); ok {
			http.Error(w, fmt.Sprintf("the request is longer than the limit of %d bytes",
				tooLong.Limit), http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			http.Error(w, "the request could not be read", http.StatusBadRequest)
			return
		}
		body = mendRoots(body)
		checked := checkBody(body)
		if checked.rejected == nil && checked.needsSession &&
			r.Header.Get("Mcp-Session-Id") == "" &&
			!mcproots.IsModern(r.Header.Get("Mcp-Protocol-Version")) {
			checked.rejected = errorResponse(nil, jsonrpc.CodeInvalidRequest,
				"there is no session: send initialize first")
		}
		if checked.rejected != nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(checked.rejected)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// checkedBody has what the server must know of a request before it is handled.
type checkedBody struct {
	// needsSession reports whether a legacy client must have a session for a message among them.
	needsSession bool
	// rejected is the response to a body that is not JSON, and to a request with malformed params,
	// or nil. The SDK rejects other malformed messages.
	rejected []byte
}

// checkBody examines the body of a request.
func checkBody(body []byte) (c checkedBody) {
	// The SDK would ignore what follows a message.
	if code, problem := checkJSON(body); problem != "" {
		c.rejected = errorResponse(nil, code, "the body "+problem)
		return c
	}
	messages := []json.RawMessage{body}
	isBatch := json.Unmarshal(body, &messages) == nil
	for _, raw := range messages {
		m, err := decodeMessage(raw)
		switch {
		case err != nil || !m.isCall():
			continue
		case m.problem != "" && !isBatch:
			c.rejected = errorResponse(m.request.ID.Raw(), jsonrpc.CodeInvalidParams, m.problem)
			return c
		}
		switch m.request.Method {
		case "initialize", "server/discover", "ping":
		default:
			c.needsSession = true
		}
	}
	return c
}

package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/internal/test/cable"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
)

// Clause N1.
func TestConnectionsNeedAToken(t *testing.T) {
	h := start(t, func(o *Options) { o.BehindProxy = true })
	secret := h.add("ana")
	for authorization, want := range map[string]int{
		"":                                    http.StatusUnauthorized,
		"Bearer":                              http.StatusUnauthorized,
		"Bearer " + secret + "x":              http.StatusUnauthorized,
		"Bearer ../" + secret:                 http.StatusUnauthorized,
		"Basic " + secret:                     http.StatusUnauthorized,
		secret:                                http.StatusUnauthorized,
		"bearer " + secret:                    http.StatusUpgradeRequired,
		"Bearer " + h.add("bob", t.TempDir()): http.StatusUpgradeRequired,
	} {
		status, _ := h.get(Path, authorization)
		require.Equal(t, want, status, authorization)
	}
	require.Contains(t, h.metrics.text(h.usage()), "acp_agent_connections_rejected_total 8\n")
	require.Contains(t, h.audit.String(), `"rejected a connection without a valid token","from":"127.0.0.1:`)
	require.Contains(t, h.audit.String(), `"forwardedFor":""`)
	require.NotContains(t, h.log.String()+h.audit.String(), strings.TrimPrefix(secret, "ana."))

	defer h.damage("ana")()
	status, body := h.get(Path, "Bearer "+secret)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "its log says why")
	require.Contains(t, h.log.String(), "ana.json is damaged")
}

// Clauses N1, N4.
func TestUsersGetWhatTheirTokensSay(t *testing.T) {
	anas, bobs := t.TempDir(), t.TempDir()
	h := start(t)
	ana := connect(t, "ws://"+h.address, h.add("ana", anas)).initialize()
	bob := connect(t, "ws://"+h.address, h.add("bob", bobs)).initialize()
	const denied = "it is in none of the folders that you may open: "
	require.Empty(t, ana.open(anas).Error)
	require.Contains(t, ana.open(bobs).Error.Message, denied+anas)
	require.Contains(t, bob.open("/").Error.Message, denied+bobs)
	require.Contains(t, string(ana.call("session/list", map[string]any{}).Result), anas)
	require.NotContains(t, string(bob.call("session/list", map[string]any{}).Result), anas)
	require.Equal(t, 1, h.audit.Count("opened a session"))
	require.Equal(t, 2, h.audit.Count("could not open a session"))
}

func TestUserIsToldWhyNothingAnswers(t *testing.T) {
	h := start(t, func(o *Options) {
		o.Serving = func(User) (acp.Options, error) { return acp.Options{}, errors.New("no agent today") }
	})
	e := connect(t, "ws://"+h.address, h.add("ana"))
	require.Contains(t, e.call("initialize", map[string]any{"protocolVersion": 1}).Error.Message, "no agent today")
	require.Error(t, e.end())
}

// A token that is no longer valid ends what came with it, and nothing of other tokens, whether the
// user connects again or not.
//
// Clause N1.
func TestTokensThatEnd(t *testing.T) {
	for name, end := range map[string]func(h *host, ana Token) (left *editor){
		"revoked with its user": func(h *host, _ Token) *editor {
			repair := h.damage("ana")
			h.endRevoked()
			require.NotContains(t, h.log.String(), "revoked")
			repair()
			require.NoError(t, h.options.Accounts.Revoke("ana"))
			return connect(t, "ws://"+h.address, h.add("bob")).initialize()
		},
		"replaced": func(h *host, _ Token) *editor {
			require.NoError(t, h.options.Accounts.Revoke("ana"))
			return connect(t, "ws://"+h.address, h.add("ana")).initialize()
		},
		"one of several": func(h *host, one Token) *editor {
			other := connect(t, "ws://"+h.address, h.another("ana")).initialize()
			require.NoError(t, h.options.Accounts.RevokeToken("ana", one.ID))
			return other
		},
		"expired": func(h *host, one Token) *editor {
			other := connect(t, "ws://"+h.address, h.another("ana")).initialize()
			content := fmt.Sprintf(`{"expires":"2001-01-01T00:00:00Z","sha256":%q}`, one.Hash)
			require.NoError(t, os.WriteFile(h.options.Accounts.tokenPath("ana", one.ID), []byte(content), 0o600))
			return other
		},
	} {
		t.Run("N1/"+name, func(t *testing.T) {
			h := start(t)
			e := connect(t, "ws://"+h.address, h.add("ana")).initialize()
			tokens := h.tokens("ana")
			left := end(h, tokens[0])
			require.ErrorContains(t, e.end(), "401")
			require.Eventually(t, func() bool {
				return h.audit.Count(`"ended the connections of a user`)+h.audit.Count(`"ended a connection whose token`) == 1
			}, time.Minute, time.Millisecond)
			left.lives()
		})
	}
}

// endless is a backend whose turns go on until they are ended.
type endless struct {
	backend.Backend
	begun chan bool
	ended chan error
}

func (b endless) Open(
	ctx context.Context, a backend.Activation, h backend.Host,
) (backend.Session, backend.Opened, error) {
	s, opened, err := b.Backend.Open(ctx, a, h)
	return endlessSession{s, b}, opened, err
}

type endlessSession struct {
	backend.Session
	backend endless
}

func (s endlessSession) Prompt(ctx context.Context, _ backend.Raw, _ backend.Updates) backend.Work {
	return func() (backend.Raw, error) {
		s.backend.begun <- true
		<-ctx.Done()
		s.backend.ended <- context.Cause(ctx)
		return backend.Stopped("cancelled"), nil
	}
}

// A token that is revoked ends the turns that came with it, also those whose connection is gone.
func TestRevokedTokenEndsTurns(t *testing.T) {
	b := endless{explore.New(), make(chan bool, 1), make(chan error, 1)}
	h := start(t, func(o *Options) {
		o.Serving = func(User) (acp.Options, error) {
			return acp.Options{Backend: func() backend.Backend { return b }}, nil
		}
	})
	cwd := t.TempDir()
	e := connect(t, "ws://"+h.address, h.add("ana", cwd)).initialize()
	tokens := h.tokens("ana")
	made := e.open(cwd).id(t)
	e.send(`{"jsonrpc":"2.0","id":99,"method":"session/prompt","params":` +
		`{"sessionId":"` + made + `","prompt":[{"type":"text","text":"x"}]}}`)
	<-b.begun
	require.NoError(t, e.in.Close())
	_, err := io.Copy(io.Discard, e.lines)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return h.acp.Used().Connections == 0 }, time.Minute, time.Millisecond)
	h.endRevoked()
	require.Equal(t, 1, h.acp.Used().Turns, "the token is valid")
	require.NoError(t, h.options.Accounts.RevokeToken("ana", tokens[0].ID))
	require.ErrorIs(t, <-b.ended, backend.ErrCancelled)
	require.Eventually(t, func() bool {
		h.endRevoked()
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.conns) == 0
	}, time.Minute, time.Millisecond)
}

// A connection belongs to the token with which it was resumed last.
func TestConnectionChangesItsToken(t *testing.T) {
	h := start(t)
	e := connect(t, "ws://"+h.address, h.add("ana")).initialize()
	first := h.tokens("ana")
	h.another("ana")
	both := h.tokens("ana")
	second := both[0]
	if second.ID == first[0].ID {
		second = both[1]
	}
	h.mu.Lock()
	require.Len(t, h.conns, 1)
	for id := range h.conns {
		defer h.readmit(id, first[0])
		h.mu.Unlock()
		h.readmit(id, second)
		h.mu.Lock()
	}
	h.mu.Unlock()
	require.NoError(t, h.options.Accounts.RevokeToken("ana", first[0].ID))
	h.endRevoked()
	e.lives()
}

// Users who may do something else from now on, may not go on as before.
func TestChangedAccount(t *testing.T) {
	before, after := t.TempDir(), t.TempDir()
	h := start(t)
	e := connect(t, "ws://"+h.address, h.add("ana", before)).initialize()
	require.Empty(t, e.open(before).Error)
	within, err := workspace.ParseDirs([]string{after})
	require.NoError(t, err)
	require.NoError(t, h.options.Accounts.Change(Account{Name: "ana", Within: within, Limits: Limits{Limits: acp.Limits{Sessions: 1}}}))
	h.endRevoked()
	require.Contains(t, e.open(before).Error.Message, "it is in none of the folders that you may open: "+after)
	require.Empty(t, e.open(after).Error)
	require.Contains(t, e.open(after).Error.Message, "the limit is 1")
}

// Clause N2.
func TestLostConnectionIsResumed(t *testing.T) {
	h := start(t)
	wire := cable.Lay(t, "ws://"+h.address)
	e := connect(t, wire.URL, h.add("ana")).initialize()
	wire.Cut()
	e.lives()
	require.Equal(t, 1, h.log.Count("resumed a connection"))
	require.Equal(t, 1, h.audit.Count(`"connected"`))
}

// A user who has lost a connection cannot close it, so it makes room for a new one. A connection
// that works does not.
//
// Clause N6.
func TestLostConnectionMakesRoom(t *testing.T) {
	h := start(t, func(o *Options) { o.Limits.Connections = 1 })
	wire, secret := cable.Lay(t, "ws://"+h.address), h.add("ana")
	connect(t, wire.URL, secret).initialize()
	wire.Pull()
	require.Eventually(t, func() bool {
		lost, _ := h.acceptor.Waiting()
		return lost == 1
	}, volume.Patience, time.Millisecond)
	connect(t, "ws://"+h.address, secret).initialize().lives()
	late := connect(t, "ws://"+h.address, secret)
	require.Contains(t, late.call("initialize", map[string]any{"protocolVersion": 1}).Error.Message,
		"too many connections: the limit is 1; close one first")
	require.Error(t, late.end())
}

// Without the audit log that the operator demands nobody is served, until it can be written again.
func TestAuditThatCannotBeWritten(t *testing.T) {
	var full atomic.Bool
	h := start(t, func(o *Options) {
		o.AuditErr = func() error {
			if full.Load() {
				return syscall.ENOSPC
			}
			return nil
		}
	})
	secret := h.add("ana")
	e := connect(t, "ws://"+h.address, secret).initialize()
	full.Store(true)
	h.endUnaudited()
	for _, path := range []string{"/readyz", Path} {
		status, body := h.get(path, "Bearer "+secret)
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, body, "cannot write its audit log")
	}
	require.Equal(t, 1, h.audit.Count("refused service because the audit log could not be written"))
	full.Store(false)
	e.lives()
}

// blocksIn waits until a goroutine waits for a lock in a method of the server.
func blocksIn(t *testing.T, method string) {
	t.Helper()
	require.Eventually(t, func() bool {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		for _, stack := range strings.Split(string(stacks), "\n\n") {
			if strings.Contains(stack, "[sync.Mutex.Lock") && strings.Contains(stack, ".(*Server)."+method+"(") {
				return true
			}
		}
		return false
	}, volume.Patience, time.Millisecond)
}

// A connection with the new rights of a user is not ended together with those that had the old
// ones.
func TestChangedAccountOfANewConnection(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // what is told to end does not run at once
	h := start(t)
	token := h.add("ana")
	connect(t, "ws://"+h.address, token).initialize()
	for sessions := range 10 {
		account := Account{Name: "ana", Limits: Limits{Limits: acp.Limits{Sessions: sessions + 1}}}
		require.NoError(t, h.options.Accounts.Change(account))
		h.mu.Lock()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			h.endRevoked()
		}()
		blocksIn(t, "endRevoked")
		link := make(chan *editor, 1)
		go func() { link <- connect(t, "ws://"+h.address, token) }()
		blocksIn(t, "admit")
		h.mu.Unlock()
		e := (<-link).initialize()
		<-ended
		e.lives()
	}
}

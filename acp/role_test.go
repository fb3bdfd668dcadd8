package acp_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
)

// roles is a server whose peers have roles.
type roles struct {
	t       *testing.T
	dir     string
	backend *scripted
	server  *acp.Server
}

func newRoles(t *testing.T, dir string, o acp.Options) *roles {
	r := &roles{t: t, dir: dir, backend: &scripted{release: make(chan struct{})}}
	o.Backend = using(r.backend)
	r.server = newServer(t, acp.ServerOptions{}, allowing(t, dir, o))
	t.Cleanup(func() { require.NoError(t, r.server.Shutdown(context.Background())) })
	return r
}

func (r *roles) connect(role acp.Role) *client {
	r.t.Helper()
	c := connectTo(r.t, r.server, acp.Peer{Principal: "ann", Remote: true, Role: role})
	c.initialize()
	return c
}

// join opens a session in a client with the role.
func (r *roles) join(role acp.Role, id string) *client {
	r.t.Helper()
	c := r.connect(role)
	c.call("session/load", rootsParams(id, r.dir))
	return c
}

// A client that may only see a session ends nothing by closing it.
//
// Clause N4.
func TestWatcherClosesOnlyItsView(t *testing.T) {
	for _, role := range []acp.Role{acp.RoleWatch, acp.RoleAnswer} {
		t.Run(string(role), func(t *testing.T) {
			r := newRoles(t, folder(t), acp.Options{})
			a := r.connect(acp.RoleFull)
			id := a.open(r.dir)
			a.beginTurn(id, "wait", "waiting")
			w := r.join(role, id)
			a.leave()
			w.call("session/close", idParams(id))
			b := r.connect(acp.RoleFull)
			require.Contains(t, string(b.call("session/load", rootsParams(id, r.dir))),
				`"running":true`)
			b.send(notification("session/cancel", idParams(id)))
		})
	}
}

// What a client says that may not answer does not count, and a question waits for one that may.
//
// Clause N4.
func TestWatcherAnswersNothing(t *testing.T) {
	for _, said := range []string{`{}`, cancelled, yes} {
		r := newRoles(t, folder(t), acp.Options{})
		a := r.connect(acp.RoleFull)
		id := a.open(r.dir)
		w := r.join(acp.RoleWatch, id)
		a.post("session/prompt", promptParams(id, askPermission))
		question(a)
		asked := question(w)
		a.leave()
		w.reply(asked, said)
		w.call("session/list", "{}") // the answer has arrived
		b := r.join(acp.RoleAnswer, id)
		b.reply(question(b), yes)
		says(w, `\"optionId\":\"yes\"`)
	}
}

// What a client chooses that was not offered to it does not count.
//
// Clause N8.
func TestAnswererAllowsNothingForGood(t *testing.T) {
	r := newRoles(t, folder(t), acp.Options{})
	a := r.connect(acp.RoleFull)
	id := a.open(r.dir)
	w := r.join(acp.RoleAnswer, id)
	a.post("session/prompt", promptParams(id, strings.Replace(askPermission, `{"optionId":"no"`,
		`{"optionId":"always","name":"Always","kind":"allow_always"},{"optionId":"no"`, 1)))
	require.Contains(t, string(question(a).Params), "always")
	asked := question(w)
	require.NotContains(t, string(asked.Params), "always")
	w.reply(asked, strings.Replace(yes, `"yes"`, `"always"`, 1))
	w.call("session/list", "{}") // the answer has arrived
	b := r.join(acp.RoleAnswer, id)
	b.reply(question(b), yes)
	says(a, `\"optionId\":\"yes\"`)
}

// A client that may only see a session does not open it, so that no other process loses it.
//
// Clause N4.
func TestWatcherTakesNoSession(t *testing.T) {
	dir, store := folder(t), memstore.New(t)
	there, here := newRoles(t, dir, acp.Options{Store: store}), newRoles(t, dir, acp.Options{Store: store})
	a := there.connect(acp.RoleFull)
	id := a.open(dir)
	a.texts(id, "say before")
	for _, role := range []acp.Role{acp.RoleWatch, acp.RoleAnswer} {
		w := here.join(role, id)
		require.Equal(t, "before", texts(w.messages(), id)[0])
		w.call("session/resume", rootsParams(id, dir))
		require.JSONEq(t, `{"status":"saved"}`, string(w.call("session/status", idParams(id))))
		w.call("session/close", idParams(id))
		require.Equal(t, []string{"after"}, a.texts(id, "say after"), "it is still here")
	}
	require.Equal(t, []string{"taken"}, here.join(acp.RoleFull, id).texts(id, "say taken"))
}

// A session does not stay open for clients that may not answer.
//
// Clause N4.
func TestWatcherKeepsNoSessionOpen(t *testing.T) {
	r := newRoles(t, folder(t), acp.Options{})
	a := r.connect(acp.RoleFull)
	id := a.open(r.dir)
	r.join(acp.RoleWatch, id)
	a.call("session/close", idParams(id))
	require.JSONEq(t, `{"status":"saved"}`,
		string(r.connect(acp.RoleFull).call("session/status", idParams(id))))
}

// Only what a role may send reaches a session.
//
// Clause N4.
func TestRolesOfMethods(t *testing.T) {
	r := newRoles(t, folder(t), acp.Options{RemoteRights: acp.RemoteRights{Extensions: true}})
	a := r.connect(acp.RoleFull)
	id := a.open(r.dir)
	turn := a.beginTurn(id, "wait", "waiting")
	w := r.join(acp.RoleWatch, id)
	for _, method := range []string{"session/prompt", "session/set_mode", "session/set_title",
		"session/delete", "session/archive", "session/new", "_echo"} {
		require.Equal(t, "not_allowed", w.try(method, namingParams(id, r.dir)).reason(t), method)
	}
	w.send(notification("session/cancel", idParams(id)), notification("_note", idParams(id)))
	w.call("session/list", "{}")
	require.NotContains(t, strings.Join(r.backend.noted(), "\n"), "cancel")
	require.NotContains(t, strings.Join(r.backend.noted(), "\n"), "_note")
	r.join(acp.RoleAnswer, id).send(notification("session/cancel", idParams(id)))
	require.Equal(t, "cancelled", a.response(turn).stopReason(t))
}

// When the context of Serve ends, so do the turns that the client has prompted, even if others see
// them, or it has left.
//
// Clause N4.
func TestTurnsEndWithTheContextOfTheirConnection(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		r := newRoles(t, folder(t), acp.Options{})
		ctx, revoke := context.WithCancel(t.Context())
		a := connectBy(t, func(_ context.Context, in io.Reader, out io.Writer) error {
			return r.server.Serve(ctx, acp.NewLines(in, out),
				acp.Peer{Principal: "ann", Remote: true})
		})
		a.initialize()
		id := a.open(r.dir)
		a.beginTurn(id, "wait", "waiting")
		b := r.join(acp.RoleFull, id)
		if leaves {
			a.leave()
		}
		revoke()
		says(b, `"stopReason":"cancelled"`)
		require.Equal(t, []string{"on"}, b.texts(id, "say on"))
	}
}

package acp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// knowing is a backend with sessions of its own. A state is the name of one behind "of ".
type knowing struct {
	scripted
	hangs chan struct{} // if set, a list of all sessions ends once it is closed or its context is

	mu      sync.Mutex
	own     []backend.ForeignSession
	hidden  []string // further ones that it does not list
	broken  error    // behind the last of a list of all
	undying error    // of CallStored
	tells   backend.Raw
	asked   int
	told    []string // what CallStored was given
}

func (k *knowing) Key(state []byte) string {
	name, ok := strings.CutPrefix(string(state), "of ")
	if !ok {
		return ""
	}
	return name
}

var _ backend.Foreign = (*knowing)(nil)

func (k *knowing) State(key string) []byte { return []byte("of " + key) }

func (k *knowing) Open(
	ctx context.Context, a backend.Activation, h backend.Host,
) (backend.Session, backend.Opened, error) {
	k.mu.Lock()
	known := slices.Contains(k.hidden, k.Key(a.State)) ||
		slices.ContainsFunc(k.own, func(s backend.ForeignSession) bool {
			return string(s.State) == string(a.State)
		})
	k.mu.Unlock()
	if a.MustExist && !known {
		return nil, backend.Opened{}, fmt.Errorf("wrapped: %w", backend.ErrUnknownSession)
	}
	s, opened, err := k.scripted.Open(ctx, a, h)
	if a.MustExist && a.Cause == backend.Load && err == nil {
		err = h.Replay(ctx, say("from the agent"))
	}
	return s, opened, err
}

func (k *knowing) Sessions(
	ctx context.Context, cwd *workspace.Dir,
) iter.Seq2[backend.ForeignSession, error] {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	own, broken := k.own, k.broken
	return func(yield func(backend.ForeignSession, error) bool) {
		for _, s := range own {
			if cwd != nil && s.Cwd != *cwd {
				continue
			}
			if !yield(s, nil) {
				return
			}
		}
		if cwd != nil {
			return
		}
		if k.hangs != nil {
			select {
			case <-k.hangs:
			case <-ctx.Done():
			}
		}
		if broken != nil {
			yield(backend.ForeignSession{}, broken)
		}
	}
}

func (k *knowing) CallStored(
	_ context.Context, method string, state []byte, params backend.Raw,
) (backend.Raw, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.told = append(k.told, fmt.Sprintf("%s %s %s", method, state, params))
	return k.tells, k.undying
}

// remember replaces the sessions that it has.
func (k *knowing) remember(own ...backend.ForeignSession) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.own = own
}

func (k *knowing) times() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked
}

func theirs(t *testing.T, name, cwd string) backend.ForeignSession {
	t.Helper()
	dir, err := workspace.ParseDir(cwd)
	require.NoError(t, err)
	return backend.ForeignSession{State: []byte("of " + name), Cwd: dir, Title: "title of\n" + name,
		Updated: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func (k *knowing) serve() backend.Backend { return k }

// Clause A31.
func TestImportedSessions(t *testing.T) {
	a, b := folder(t), folder(t)
	r := &knowing{own: []backend.ForeignSession{theirs(t, "one", a)}}
	c := start(t, acp.Options{Backend: r.serve})
	own := c.open(b)
	sessions := c.list(`{}`)
	require.Len(t, sessions, 2)
	require.Equal(t, own, sessions[0].SessionID)
	id := sessions[1].SessionID
	require.Equal(t, listed{SessionID: id, Cwd: a, AdditionalDirectories: []string{},
		Title: "title of one", UpdatedAt: "2026-01-02T03:04:05.000Z"}, sessions[1])
	require.Len(t, c.list(encode(map[string]any{"cwd": a})), 1, "A16")

	require.Equal(t, "cwd_mismatch", c.try("session/load", rootsParams(id, b)).reason(t), "A11")
	require.Equal(t, "not_active", c.try("session/prompt", promptParams(id, "x")).reason(t), "A28")
	c.call("session/load", rootsParams(id, a))
	require.Contains(t, fmt.Sprint(r.noted()), "open session/load ["+a+"] state=of one")
	require.Equal(t, []string{"hi"}, c.texts(id, "say hi"))
	require.Equal(t, []string{}, c.find(id).AdditionalDirectories, "A13")
	var fork struct{ SessionID string }
	require.NoError(t, json.Unmarshal(c.call("session/fork", rootsParams(id, b)), &fork))
	require.Contains(t, fmt.Sprint(r.noted()), "open session/fork ["+b+"] state=of one")
	require.Len(t, c.list(`{}`), 3)
}

// Clause A31.
func TestImportInterval(t *testing.T) {
	a := folder(t)
	r := &knowing{own: []backend.ForeignSession{theirs(t, "one", a)}}
	c := start(t, acp.Options{Backend: r.serve}.With(acp.Tuning{Imports: listing.Times{Every: time.Hour}}))
	for range 5 {
		require.Len(t, c.list(`{}`), 1)
	}
	require.Equal(t, 1, r.times())

	often := start(t,
		acp.Options{Backend: r.serve}.With(acp.Tuning{Imports: listing.Times{Every: time.Nanosecond}}))
	for range 60 {
		often.open(a)
	}
	var page struct{ NextCursor string }
	require.NoError(t, json.Unmarshal(often.call("session/list", `{}`), &page))
	before := r.times()
	require.Greater(t, before, 1)
	often.call("session/list", encode(map[string]any{"cursor": page.NextCursor}))
	require.Equal(t, before, r.times(), "the first page only")
}

// Clause A31.
func TestSlowImport(t *testing.T) {
	a := folder(t)
	r := &knowing{own: []backend.ForeignSession{theirs(t, "one", a)}, hangs: make(chan struct{})}
	c := start(t, acp.Options{Backend: r.serve}.With(acp.Tuning{Imports: listing.Times{Wait: time.Millisecond}}))
	require.Eventually(t, func() bool {
		return len(c.list(`{}`)) == 1
	}, patience, time.Millisecond, "what came in time is listed")
	c.list(`{}`)
	require.Equal(t, 1, r.times(), "one import at a time")
	close(r.hangs)
}

// A list by cwd asks for this directory only, and does not wait behind a list of everything.
//
// Clause A16.
func TestImportByCwd(t *testing.T) {
	elsewhere, a := folder(t), folder(t)
	link := filepath.Join(folder(t), "link")
	require.NoError(t, os.Symlink(a, link))
	r := &knowing{hangs: make(chan struct{})}
	for i := range 1_500 {
		r.own = append(r.own, theirs(t, fmt.Sprint("elsewhere ", i), elsewhere))
	}
	for i := range 5 { // the oldest first
		s := theirs(t, fmt.Sprint(i), a)
		s.Updated = s.Updated.Add(time.Duration(i) * time.Hour)
		r.own = append(r.own, s)
	}
	r.own[1_504].Cwd = theirs(t, "", link).Cwd
	c := start(t, acp.Options{Backend: r.serve}.With(acp.Tuning{Imports: listing.Times{Wait: time.Millisecond}}))
	c.list(`{}`)
	byCwd := start(t, acp.Options{Backend: r.serve}.With(acp.Tuning{Imports: listing.Times{Wait: patience}}))
	byCwd.post("session/list", `{}`)
	titles := func(cwd string) (titles []string) {
		for _, s := range byCwd.list(encode(map[string]any{"cwd": cwd})) {
			titles = append(titles, s.Title)
		}
		return titles
	}
	require.Equal(t, []string{"title of 3", "title of 2", "title of 1", "title of 0"}, titles(a),
		"the newest first")
	require.Equal(t, []string{"title of 4", "title of 3", "title of 2", "title of 1", "title of 0"},
		titles(link), "and by the real path")
	close(r.hangs)
	require.Eventually(t, func() bool {
		return c.count() == 1_505
	}, patience, 20*time.Millisecond, "the rest is imported in the background")
}

// Clause P6.
func TestListedMeta(t *testing.T) {
	a := folder(t)
	one, two := theirs(t, "one", a), theirs(t, "two", a)
	one.Meta, two.Meta = backend.Raw(`{"branch":"<main>","n":1.0,"n":1e0}`),
		backend.Raw(`{"x":"`+strings.Repeat("x", 20_000)+`"}`)
	two.Archived = true
	r := &knowing{own: []backend.ForeignSession{one, two}}
	c := start(t, acp.Options{Backend: r.serve})
	require.Contains(t, string(c.call("session/list", `{}`)),
		`"archived":false,"_meta":{"branch":"<main>","n":1.0,"n":1e0}}`)
	require.NotContains(t, string(c.call("session/list", `{"archived":"only"}`)), "_meta",
		"it is too large")
	require.Len(t, c.archived("only"), 1)
}

// Clause W9.
func TestImportEndsWithConnection(t *testing.T) {
	r := &knowing{hangs: make(chan struct{})}
	c := start(t, acp.Options{Backend: r.serve}.With(
		acp.Tuning{Imports: listing.Times{Wait: time.Millisecond}, CloseGrace: patience}))
	c.list(`{}`)
	c.leave() // and goleak
}

// Clause A31.
func TestImportSkipsInvalidSessions(t *testing.T) {
	a := folder(t)
	var log bytes.Buffer
	good := theirs(t, "good", a)
	nameless, rootless, huge := good, theirs(t, "rootless", a), theirs(t, "huge", a)
	nameless.State, rootless.Cwd = []byte("nameless"), workspace.Dir{}
	huge.State = append(huge.State, bytes.Repeat([]byte("x"), 64<<10)...)
	r := &knowing{own: []backend.ForeignSession{nameless, rootless, huge, good},
		broken: errors.New("the child died")}
	c := start(t, acp.Options{Backend: r.serve, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.Len(t, c.list(`{}`), 1)
	c.leave()
	require.Equal(t, 3, strings.Count(log.String(), "cannot import a session of the agent"))
	require.Contains(t, log.String(), "the child died")
}

// Clauses A24, A31.
func TestImportedSessionsInBroadFolders(t *testing.T) {
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	top := filepath.VolumeName(home) + string(filepath.Separator)
	r := &knowing{}
	broad := []string{top, filepath.Dir(home), home}
	for i, dir := range broad {
		r.own = append(r.own, theirs(t, fmt.Sprint("broad ", i), dir))
	}
	c := start(t, acp.Options{Backend: r.serve})
	require.Len(t, c.list(`{}`), len(broad))
	sessions := c.list(encode(map[string]any{"cwd": home}))
	require.Empty(t, sessions[0].AdditionalDirectories)
	id := sessions[0].SessionID
	c.call("session/load", rootsParams(id, home))
	require.Contains(t, fmt.Sprint(c.texts(id, "say hi")), "This session reaches everything in it")
	require.Equal(t, []string{"hi"}, c.texts(id, "say hi"), "once")
}

// What a list may leave out was not necessarily deleted.
//
// Clause A31.
func TestSessionsThatAPartialListLeavesOut(t *testing.T) {
	a := folder(t)
	r := &knowing{broken: backend.ErrPartial}
	r.own = []backend.ForeignSession{theirs(t, "one", a), theirs(t, "two", a)}
	c := start(t, acp.Options{Backend: r.serve}.With(
		acp.Tuning{Imports: listing.Times{Every: time.Nanosecond, Grace: patience}}))
	require.Len(t, c.list(`{}`), 2)
	r.remember(r.own[:1]...)
	require.Len(t, c.list(`{}`), 2)
	require.Len(t, c.list(`{}`), 2)
}

// A session that was deleted in the agent disappears from lists, or is marked if something of it is
// stored here.
//
// Clause A31.
func TestSessionsThatTheAgentNoLongerHas(t *testing.T) {
	a := folder(t)
	r := &knowing{}
	for _, name := range []string{"kept", "untouched", "opened"} {
		r.own = append(r.own, theirs(t, name, a))
	}
	store := memstore.New(t)
	o := acp.Options{Backend: r.serve, Store: store}.With(
		acp.Tuning{Imports: listing.Times{Every: time.Nanosecond, Grace: patience}})
	c := start(t, o)
	ids := map[string]string{}
	for _, s := range c.list(`{}`) {
		ids[s.Title] = s.SessionID
	}
	c.call("session/load", rootsParams(ids["title of opened"], a))
	c.texts(ids["title of opened"], "say hi")
	r.remember(r.own[:1]...)
	titles := func(params string) (titles []string) {
		for _, s := range c.list(params) {
			titles = append(titles, s.Title)
		}
		return titles
	}
	left := []string{"[deleted in the agent] title of opened", "title of kept"}
	require.Equal(t, left, titles(encode(map[string]any{"cwd": a})))
	require.Equal(t, left, titles(`{}`))
	require.Contains(t, string(c.call("session/list", `{}`)),
		`"_meta":{"acp-agent":{"deletedInAgent":true,"open":true}}`)
	_, err := store.Get(t.Context(), sessionstore.ID(ids["title of untouched"]))
	require.ErrorAs(t, err, new(*sessionstore.NotFoundError))
	opened, err := store.Get(t.Context(), sessionstore.ID(ids["title of opened"]))
	require.NoError(t, err)
	require.True(t, opened.Gone)

	r.remember(theirs(t, "kept", a), theirs(t, "opened", a))
	require.Equal(t, []string{"title of opened", "title of kept"}, titles(`{}`), "it is back")
	r.broken = errors.New("the child died")
	r.remember()
	require.Len(t, titles(`{}`), 2, "the list is not complete")
}

// A list in a later process does not wait for the agent, and the next one sees what the agent said.
//
// Clause A31.
func TestLaterListsDoNotWait(t *testing.T) {
	a := folder(t)
	store := memstore.New(t)
	r := &knowing{own: []backend.ForeignSession{theirs(t, "one", a)}}
	c := start(t, acp.Options{Backend: r.serve, Store: store})
	require.Len(t, c.list(`{}`), 1)
	c.leave()

	later := &knowing{own: []backend.ForeignSession{theirs(t, "one", a), theirs(t, "two", a)},
		hangs: make(chan struct{})}
	c = start(t, acp.Options{Backend: later.serve, Store: store}.With(
		acp.Tuning{Imports: listing.Times{Grace: time.Nanosecond, Wait: time.Hour}}))
	require.Len(t, c.list(`{}`), 1)
	close(later.hangs)
	require.Eventually(t, func() bool { return len(c.list(`{}`)) == 2 }, patience, time.Millisecond)
	require.Equal(t, 1, later.times())
}

// A page behind the first one waits for an import that is not over, and does not end the list.
//
// Clauses A18, A31.
func TestNextPageDuringTheFirstImport(t *testing.T) {
	a := folder(t)
	r := &knowing{hangs: make(chan struct{})}
	for i := range 120 {
		s := theirs(t, fmt.Sprint(i), a)
		s.Updated = s.Updated.Add(time.Duration(i) * time.Hour)
		r.own = append(r.own, s)
	}
	c := start(t, acp.Options{Backend: r.serve}.With(acp.Tuning{Imports: listing.Times{Wait: time.Nanosecond}}))
	var page struct {
		Sessions   []listed
		NextCursor string
	}
	require.Eventually(t, func() bool {
		require.NoError(t, json.Unmarshal(c.call("session/list", `{}`), &page))
		return page.NextCursor != ""
	}, patience, time.Millisecond)
	id := c.post("session/list", encode(map[string]any{"cursor": page.NextCursor}))
	close(r.hangs)
	page.NextCursor = ""
	require.NoError(t, json.Unmarshal(c.response(id).Result, &page))
	require.Len(t, page.Sessions, 50)
	require.NotEmpty(t, page.NextCursor)
}

// An agent that does not answer does not keep later lists from asking again.
//
// Clause A31.
func TestImportTimeout(t *testing.T) {
	r := &knowing{hangs: make(chan struct{})}
	c := start(t, acp.Options{Backend: r.serve}.With(
		acp.Tuning{Imports: listing.Times{Every: 1, Wait: 1, Timeout: 1}}))
	require.Eventually(t, func() bool {
		c.list(`{}`)
		return r.times() > 3
	}, patience, time.Millisecond)
}

// Only a complete list of all sessions answers for a folder.
//
// Clause A31.
func TestFailedImportServesNoOtherList(t *testing.T) {
	a := folder(t)
	for _, broken := range []error{nil, backend.ErrPartial, errors.New("the child died")} {
		r := &knowing{broken: broken}
		c := start(t, acp.Options{Backend: r.serve})
		for range 2 {
			c.list(`{}`)
			c.list(encode(map[string]any{"cwd": a}))
		}
		require.Equal(t, map[bool]int{true: 2, false: 1}[broken != nil], r.times())
	}
}

// Clause A31.
func TestImportsOfManyDirectoriesAreBounded(t *testing.T) {
	r := &knowing{hangs: make(chan struct{})}
	c := start(t, acp.Options{Backend: r.serve}.With(acp.Tuning{Imports: listing.Times{Wait: time.Millisecond}}))
	for range 50 {
		c.list(encode(map[string]any{"cwd": folder(t)}))
	}
	close(r.hangs)
	c.leave()
	require.LessOrEqual(t, r.times(), 17, "16 directories and an import of all")
}

// Clause A31.
func TestImportLimit(t *testing.T) {
	a := folder(t)
	r := &knowing{}
	for i := range 300 {
		r.own = append(r.own, theirs(t, fmt.Sprint(i), a))
	}
	c := start(t, acp.Options{Backend: r.serve}.With(acp.Tuning{Imports: listing.Times{Max: 130}}))
	require.Equal(t, 130, c.count())
}

// Clause A28.
func TestDeleteImported(t *testing.T) {
	a := folder(t)
	r := &knowing{own: []backend.ForeignSession{theirs(t, "one", a), theirs(t, "two", a)},
		undying: errors.New("not supported")}
	c := start(t, acp.Options{Backend: r.serve}.With(acp.Tuning{Imports: listing.Times{Every: time.Nanosecond}}))
	sessions := c.list(`{}`)
	require.Len(t, sessions, 2)
	var fork struct{ SessionID string }
	require.NoError(t,
		json.Unmarshal(c.call("session/fork", rootsParams(sessions[0].SessionID, a)), &fork))
	c.call("session/delete", idParams(fork.SessionID))
	require.Empty(t, r.told, "a fork that has no session of its own yet leaves its source's")
	c.call("session/load", rootsParams(sessions[0].SessionID, a))
	c.call("session/delete", idParams(sessions[0].SessionID))
	require.Len(t, r.told, 1)
	require.Contains(t, r.told[0], "session/delete of ")
	require.Equal(t, []listed{sessions[1]}, c.list(`{}`),
		"the agent lists it still, and it is not shown again")
}

// Clause A31.
func TestOwnSessionIsNotImported(t *testing.T) {
	a := folder(t)
	store := memstore.New(t)
	r := &knowing{}
	r.opened = func(_ backend.Activation, h backend.Host) {
		require.NoError(t, h.SaveState(t.Context(), []byte("of early")))
	}
	c := start(t,
		acp.Options{Store: store, Backend: r.serve}.With(acp.Tuning{Imports: listing.Times{Every: time.Nanosecond}}))
	id := c.open(a)
	r.own = []backend.ForeignSession{theirs(t, "early", a), theirs(t, "late", a)}
	require.Len(t, c.list(`{}`), 2)
	c.texts(id, "state of late")
	sessions := c.list(`{}`)
	require.Len(t, sessions, 1, "the imported one was the same, and the one before was given up")
	session, err := store.Get(t.Context(), sessionstore.ID(id))
	require.NoError(t, err)
	require.Equal(t, "late", session.StateKey)
}

// startled is a backend that panics when it is asked for its own sessions.
type startled struct{ knowing }

func (s *startled) Sessions(
	context.Context, *workspace.Dir,
) iter.Seq2[backend.ForeignSession, error] {
	return func(func(backend.ForeignSession, error) bool) { panic("in Sessions") }
}

// The sessions that are stored are listed all the same.
//
// Clauses W8, A31.
func TestPanicDuringImport(t *testing.T) {
	log := &logtest.Text{}
	c := start(t, acp.Options{Backend: using(&startled{}), Logger: log.Logger(slog.LevelWarn)}.
		With(acp.Tuning{Imports: listing.Times{Every: 1}}))
	id := c.open(folder(t))
	for range 3 {
		require.Equal(t, id, c.find(id).SessionID)
	}
	require.Equal(t, []string{"x"}, c.texts(id, "say x"))
	c.leave()
	require.Equal(t, 3, log.Count("listing sessions"))
}

// Ids of the backend's own open its sessions, listed or not, and name them from then on.
//
// Clause A31.
func TestLoadByIDOfAgent(t *testing.T) {
	for _, method := range []string{"session/load", "session/resume"} {
		for _, id := range []string{"listed", "hidden"} {
			t.Run("A31/"+method+" "+id, func(t *testing.T) {
				a, b := folder(t), folder(t)
				store := memstore.New(t)
				one := theirs(t, "listed", a)
				one.Meta = backend.Raw(`{"n":1.0}`)
				r := &knowing{own: []backend.ForeignSession{one}, hidden: []string{"hidden"}}
				c := start(t,
					acp.Options{Store: store, Backend: r.serve}.With(acp.Tuning{Imports: listing.Times{Every: 1}}))
				if id == "listed" {
					require.Equal(t, []string{"cwd cwd_mismatch"},
						c.try(method, rootsParams(id, b)).findings(t), "A11")
				}
				require.Equal(t, []string{"additionalDirectories[0] missing"},
					c.try(method, rootsParams(id, a, filepath.Join(b, "none"))).findings(t))
				require.Empty(t, r.noted(), "a failed attempt leaves nothing")
				page, err := store.List(t.Context(), sessionstore.Query{})
				require.NoError(t, err)
				require.Empty(t, page.Sessions)

				c.call(method, rootsParams(id, a, b))
				require.Equal(t, []string{"open " + method + " [" + a + ", " + b + "] state=of " +
					id}, r.noted())
				require.Equal(t, []string{"x"}, c.texts(id, "say x"))
				if id == "listed" {
					got := c.find(id)
					require.Equal(t, "title of listed", got.Title)
					require.Equal(t, []string{b}, got.AdditionalDirectories)
					require.Contains(t, string(c.call("session/list", `{}`)), `"n":1.0}`)
				}
				c.leave()

				again := start(t, acp.Options{Store: store, Backend: r.serve})
				require.Equal(t, []string{"cwd cwd_mismatch"},
					again.try(method, rootsParams(id, b)).findings(t))
				again.call("session/load", rootsParams(id, a, b))
				shown := texts(again.messages(), id)
				if method == "session/load" {
					require.Equal(t, []string{"from the agent", "x"}, shown, "P7")
				} else {
					require.Equal(t, []string{"x"}, shown)
				}
				var ids []string
				for _, s := range again.list(`{}`) {
					ids = append(ids, s.SessionID)
				}
				require.Contains(t, ids, id)
				require.Len(t, ids, map[string]int{"listed": 1, "hidden": 2}[id],
					"each session once")
			})
		}
	}
}

// Two windows open a session at once that only its agent knows.
//
// Clause A31.
func TestLoadByIDOfAgentBesideAnotherWindow(t *testing.T) {
	for _, method := range []string{"session/load", "session/resume"} {
		t.Run(method, func(t *testing.T) {
			a, store := folder(t), memstore.New(t)
			r := &knowing{own: []backend.ForeignSession{theirs(t, "its", a)}}
			first := start(t, acp.Options{Store: store, Backend: r.serve})
			then := &knowing{own: r.own}
			then.opened = func(backend.Activation, backend.Host) {
				first.call("session/load", rootsParams("its", a))
			}
			second := start(t, acp.Options{Store: store, Backend: then.serve})
			second.call(method, rootsParams("its", a))
			require.Equal(t, []string{"from the agent"}, recorded(t, store, "its"))
			require.Equal(t, []string{"x"}, second.texts("its", "say x"))
			require.Equal(t, []string{"from the agent", "x"}, recorded(t, store, "its"))
		})
	}
}

// Clause A28.
func TestUnknownToAgentToo(t *testing.T) {
	store := memstore.New(t)
	a := folder(t)
	r := &knowing{own: []backend.ForeignSession{theirs(t, "one", a)}}
	c := start(t, acp.Options{Store: store, Backend: r.serve}.With(acp.Tuning{Imports: listing.Times{Every: 1}}))
	for _, method := range []string{"session/load", "session/resume", "session/fork"} {
		for _, id := range []string{"none", strings.Repeat("x", 5_000)} {
			m := c.try(method, rootsParams(id, a))
			require.Equal(t, -32002, m.Error.Code)
			require.Equal(t, "not_found", m.reason(t))
		}
	}
	for _, method := range []string{"session/prompt", "session/set_mode", "session/archive"} {
		require.Equal(t, -32002, c.try(method, promptParams("one", "x")).Error.Code)
	}
	page, err := store.List(t.Context(), sessionstore.Query{})
	require.NoError(t, err)
	require.Empty(t, page.Sessions)

	listed := c.list(`{}`)
	require.Len(t, listed, 1)
	c.call("session/delete", idParams(listed[0].SessionID))
	require.Equal(t, "not_found", c.try("session/load", rootsParams("one", a)).reason(t),
		"it was deleted here")
	require.Empty(t, c.list(`{}`))
}

// Clause A14.
func TestForkByIDOfAgent(t *testing.T) {
	a, b := folder(t), folder(t)
	r := &knowing{hidden: []string{"hidden", "copy"}}
	r.opened = func(_ backend.Activation, h backend.Host) {
		require.NoError(t, h.SaveState(t.Context(), []byte("of copy")))
	}
	c := start(t, acp.Options{Backend: r.serve})
	var fork struct{ SessionID string }
	require.NoError(t, json.Unmarshal(c.call("session/fork", rootsParams("hidden", b, a)), &fork))
	require.Equal(t, []string{"open session/fork [" + b + ", " + a + "] state=of hidden"},
		r.noted())
	require.Equal(t, []string{"x"}, c.texts(fork.SessionID, "say x"))
	require.Len(t, c.list(`{}`), 1)
}

// The backend's own id opens the session that is stored for it, which keeps its id.
//
// Clauses A13, A31.
func TestStoredSessionByIDOfAgent(t *testing.T) {
	a, b := folder(t), folder(t)
	store, consents := memstore.New(t), t.TempDir()
	r := &knowing{own: []backend.ForeignSession{theirs(t, "one", a)}}
	window := func() *client {
		return start(t, acp.Options{Store: store, Backend: r.serve, ConsentDir: consents}.
			With(acp.Tuning{Imports: listing.Times{Every: 1}}))
	}
	first := window()
	id := first.list(`{}`)[0].SessionID
	first.call("session/load", rootsParams(id, a, b))
	require.Equal(t, []string{"x"}, first.texts(id, "say x"))

	second := window()
	second.call("session/load", rootsParams("one", a, b))
	require.Equal(t, []string{"from the agent", "x"}, texts(second.messages(), "one"))
	require.Equal(t, "fenced", first.try("session/prompt", promptParams(id, "say y")).reason(t),
		"another window has it now")
	require.Equal(t, []string{"y"}, second.texts("one", "say y"))
	require.Equal(t, []string{b}, second.find(id).AdditionalDirectories)
	require.Len(t, second.list(`{}`), 1)

	first.call("session/load", rootsParams(id, a))
	require.Equal(t, []string{"from the agent", "x", "y"}, texts(first.messages(), id)[2:])
	require.NotNil(t, second.try("session/prompt", promptParams("one", "say z")).Error)
	require.Len(t, first.list(`{}`), 1)

	third := window()
	third.call("session/fork", rootsParams("one", a))
	third.call("session/load", rootsParams("one", a))
	third.permit("allow-once")
	third.say("one", "/roots add "+b)
	require.Equal(t, bracketed(a, b), third.roots(third.after("session/load", id, a, nil)))
	third.call("session/archive", idParams("one"))
	require.Len(t, third.list(`{}`), 1, "the fork")
	third.call("session/delete", idParams("one"))
	require.Equal(t, "not_found", third.try("session/load", rootsParams(id, a)).reason(t))
	require.Equal(t, "not_found", third.try("session/load", rootsParams("one", a)).reason(t))
}

// session/options of a session is about that session, with the folders that it would have.
//
// Clauses A5, A10.
func TestOptionsOfASession(t *testing.T) {
	cwd, lib := folder(t), folder(t)
	k := &knowing{tells: backend.Raw(`{"configOptions":[]}`), own: []backend.ForeignSession{theirs(t, "theirs", cwd)}}
	c := start(t, acp.Options{Backend: func() backend.Backend { return k }})
	options := func(id string, params map[string]any) message {
		params["sessionId"] = id
		return c.try("session/options", encode(params))
	}
	got := options("theirs", map[string]any{"cwd": cwd, "additionalDirectories": []string{lib}})
	require.Nil(t, got.Error)
	require.JSONEq(t, `{"configOptions":[]}`, string(got.Result))
	require.Equal(t, []string{`session/options of theirs ` + encode(map[string]any{"cwd": cwd,
		"additionalDirectories": []string{lib}})}, k.told)
	for reason, m := range map[string]message{
		"nowhere":      options("nowhere", map[string]any{"cwd": cwd}),
		"cwd_mismatch": options("theirs", map[string]any{"cwd": lib}),
	} {
		require.NotNil(t, m.Error, reason)
		require.Contains(t, m.Error.Message+string(m.Error.Data), reason)
	}
	require.Len(t, k.told, 1)
}

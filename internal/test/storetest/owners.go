package storetest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// ownerTests are about the sessions of several owners. The other tests have a neighbour too.
func ownerTests() []ownerTest {
	return []ownerTest{
		{"N1/another owner's session is not found", foreignSession},
		{"N1/lists of owners", listsOfOwners},
		{"N1/what an agent lists belongs to the owner", importsOfOwners},
		{"N1/a name that is not text owns nothing of others", strangeNames},
		{"N1/closing the store of an owner", closeOwner},
		{"the names of owners", namesOfOwners},
		{"N1/searches of owners", searchesOfOwners},
		{"N1/charges of owners", chargesOfOwners},
	}
}

type ownerTest struct {
	name string
	run  func(t *testing.T, s sessionstore.Shared)
}

// neighbour is another owner, who has sessions with the ids and names that tests use. A test may
// neither see nor change them.
type neighbour struct {
	store  store
	before []sessionstore.Session
}

func newNeighbour(t *testing.T, s sessionstore.Shared) neighbour {
	t.Helper()
	n := neighbour{store: s.For("neighbour")}
	lease, err := n.store.Create(t.Context(), sessionstore.Session{
		ID: "one", Agent: explore(), Keys: Keys(t, "app"), State: []byte("x"), StateKey: "b",
	})
	require.NoError(t, err)
	Begin(t, n.store, lease, sessionstore.Turn{Prompt: []update{say("neighbour")}})
	importSessions(t, n.store, listedByAgent(t, "a"))
	n.before = n.sessions(t)
	return n
}

func (n neighbour) sessions(t *testing.T) (all []sessionstore.Session) {
	for _, session := range listAll(t, n.store, sessionstore.Query{}) {
		all = append(all, get(t, n.store, string(session.ID)))
	}
	return all
}

func (n neighbour) requireUnchanged(t *testing.T) {
	t.Helper()
	require.Equal(t, n.before, n.sessions(t), "another owner's sessions")
	require.Equal(t, texts(say("neighbour")), history(t, n.store, "one"))
}

func namesOfOwners(t *testing.T, s sessionstore.Shared) {
	owners, err := s.Owners(t.Context())
	require.NoError(t, err)
	require.Empty(t, owners)
	for _, owner := range []string{"bob", "", "ann", "ann b", "bob"} {
		Create(t, s.For(owner), "of "+owner+strings.Repeat("'", len(owners)))
		owners = append(owners, owner)
	}
	owners, err = s.Owners(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"", "ann", "ann b", "bob"}, owners)
}

// foreignSession calls every method with the id of a session that belongs to another owner.
func foreignSession(t *testing.T, s sessionstore.Shared) {
	ann := s.For("ann")
	lease := createAs(t, ann, sessionstore.Session{ID: "one", State: []byte("x"), StateKey: "a"})
	record(t, ann, lease, "secret", mode("m"))
	draft := newDraft(t, ann, "one", say("draft"))
	before := get(t, ann, "one")
	for _, other := range []store{s, s.For("bob"), s.For("an"), s.For("ann ")} {
		ctx := t.Context()
		k := Keys(t, "lib")
		_, getErr := other.Get(ctx, "one")
		_, activateErr := other.Activate(ctx, "one", sessionstore.Activation{Keys: k})
		fork := sessionstore.Session{ID: "fork", Agent: explore(), Keys: k}
		_, forkErr := other.Fork(ctx, "one", fork)
		_, statesErr := other.States(ctx, "one")
		_, newDraftErr := other.NewDraft(ctx, "one")
		all := map[string]error{
			"Get": getErr, "Activate": activateErr, "Fork": forkErr, "States": statesErr,
			"NewDraft": newDraftErr, "Rename": other.Rename(ctx, "one", "x"),
		}
		_, all["Named"] = other.Named(ctx, explore(), "a")
		all["Archive"], all["Unarchive"] = other.Archive(ctx, "one"), other.Unarchive(ctx, "one")
		for _, all["Segments"] = range other.Segments(ctx, "one", 0) {
		}
		for name, write := range writes() {
			all[name] = write(ctx, other, lease)
		}
		for _, all["History"] = range other.History(ctx, "one") {
		}
		for _, all["Finished"] = range other.Finished(ctx, "one") {
		}
		for name, err := range all {
			require.ErrorAs(t, err, new(*sessionstore.NotFoundError), name)
		}
		Create(t, other, "one")
		_, err := other.Activate(ctx, "one", sessionstore.Activation{Keys: k, History: draft})
		require.ErrorIs(t, err, sessionstore.ErrDraft)
		require.NoError(t, other.Delete(ctx, "one"))
		require.NoError(t, other.Delete(ctx, "one"), "again")
		require.Empty(t, listAll(t, other, sessionstore.Query{}))
	}
	require.Equal(t, before, get(t, ann, "one"))
	require.NoError(t, s.For("ann").Append(t.Context(), lease, nil), "in another store of the owner")
	_, err := s.For("ann").Activate(t.Context(), "one", sessionstore.Activation{Keys: Keys(t, "app"), History: draft})
	require.NoError(t, err)
	require.Equal(t, texts(text("user_message_chunk", "secret"), say("draft")), history(t, ann, "one"))
}

func listsOfOwners(t *testing.T, s sessionstore.Shared) {
	owners := []store{s, s.For("ann"), s.For("bob")}
	names := []string{"b", "ab", "a", "a\x01", "a~", "ä", "a b"}
	for i, own := range owners {
		for _, name := range names[i:] {
			Create(t, own, name)
		}
	}
	cwd := sessionstore.FilterDir(dir(t, "app"))
	for i, own := range owners {
		for _, q := range []sessionstore.Query{{}, {Agent: explore()}, {Cwd: cwd}, {Agent: explore(), Cwd: cwd, Limit: 2}} {
			all := listAll(t, own, q)
			require.ElementsMatch(t, names[i:], ids(all))
			for j := range all[1:] {
				require.Negative(t, position(all[j]).Compare(position(all[j+1])), "%q", ids(all))
			}
		}
		q := sessionstore.Query{Unused: sessionstore.UnusedFilter{Before: latest(t, own), Keep: []sessionstore.ID{"a", "ä"}}}
		require.ElementsMatch(t, []string{"a", "ä"}, ids(listAll(t, own, q)))
		require.Empty(t, listAll(t, own, sessionstore.Query{Agent: sessionstore.Agent{Kind: "other"}}))
	}
	page := list(t, owners[1], sessionstore.Query{Limit: 2})
	for _, session := range listAll(t, owners[2], sessionstore.Query{Cursor: page.Next}) {
		require.Contains(t, names[2:], string(session.ID), "another owner's cursor")
	}
	n, err := owners[1].Prune(t.Context(), sessionstore.PruneQuery{Before: latest(t, owners[2]), DryRun: true})
	require.NoError(t, err)
	require.Equal(t, len(names)-1, n)
	require.Equal(t, len(names)-1, prune(t, owners[1], sessionstore.PruneQuery{Before: latest(t, owners[2])}))
	require.Empty(t, listAll(t, owners[1], sessionstore.Query{}))
	require.Len(t, listAll(t, owners[0], sessionstore.Query{}), len(names))
	require.Len(t, listAll(t, owners[2], sessionstore.Query{}), len(names)-2)
}

func position(s sessionstore.Session) sessionstore.Position {
	return sessionstore.Position{Updated: s.Updated, ID: s.ID}
}

func importsOfOwners(t *testing.T, s sessionstore.Shared) {
	ann, bob := s.For("ann"), s.For("bob")
	for _, own := range []store{s, ann, bob} {
		require.Equal(t, 2, importSessions(t, own, listedByAgent(t, "a"), listedByAgent(t, "b")))
	}
	require.NoError(t, ann.Delete(t.Context(), "id of a"))
	require.Zero(t, importSessions(t, ann, listedByAgent(t, "a")), "it was deleted")
	require.NoError(t, get(t, bob, "id of a").Keys.Validate(), "it is still there")
	require.Equal(t, 1, retainOnly(t, bob, "a"))
	require.Equal(t, []string{"id of b"}, ids(listAll(t, ann, sessionstore.Query{})))
	require.Equal(t, []string{"id of a"}, ids(listAll(t, bob, sessionstore.Query{})))
	require.Len(t, listAll(t, s, sessionstore.Query{}), 2)
	c := listedByAgent(t, "c")
	for _, own := range []store{s, ann, bob} {
		adoptSession(t, own, c, newDraft(t, own, "", say("history")))
		require.Equal(t, texts(say("history")), history(t, own, string(c.ID)))
	}
}

// strangeNames looks for sessions by ids that are not text, and as owners whose names are alike.
func strangeNames(t *testing.T, s sessionstore.Shared) {
	Create(t, s.For("ann"), "one")
	for _, separator := range []string{"\xff", "\x00", "\x1f", "/", "\xff\xff"} {
		for _, other := range []struct{ owner, id string }{
			{"", "ann" + separator + "one"}, {"", "one" + separator + "ann"},
			{"a", "nn" + separator + "one"}, {"ann/", "one"}, {"ann\x1f", "one"},
			{"ann", separator + "one"}, {"ann", "one" + separator},
		} {
			_, err := s.For(other.owner).Get(t.Context(), sessionstore.ID(other.id))
			require.Error(t, err, "%q", other)
			require.NoError(t, s.For(other.owner).Delete(t.Context(), sessionstore.ID(other.id)))
		}
	}
	require.NotZero(t, get(t, s.For("ann"), "one"))
}

func closeOwner(t *testing.T, s sessionstore.Shared) {
	ann := s.For("ann")
	Create(t, ann, "one")
	require.NoError(t, ann.Close())
	require.NotZero(t, get(t, s.For("ann"), "one"))
	require.NoError(t, s.Close())
	_, err := ann.Get(t.Context(), "one")
	require.ErrorIs(t, err, sessionstore.ErrClosed)
}

func chargesOfOwners(t *testing.T, s sessionstore.Shared) {
	for i, owner := range []string{"", "ann", "anna"} {
		spend(t, s.For(owner), Create(t, s.For(owner), "one"), usd(at(9, i), float64(i+1), 1, ""))
	}
	for i, owner := range []string{"", "ann", "anna"} {
		all := sums(t, s.For(owner), sessionstore.ChargeQuery{})
		require.Len(t, all, 1)
		require.InDelta(t, float64(i+1), all[0].Amount, 0)
		require.Equal(t, sessionstore.ID("one"), all[0].Session)
		require.Equal(t, all, sums(t, s.For(owner), sessionstore.ChargeQuery{Session: "one"}))
	}
	require.Empty(t, sums(t, s.For("bob"), sessionstore.ChargeQuery{Session: "one"}))
	require.NoError(t, s.For("ann").Delete(t.Context(), "one"))
	require.Len(t, sums(t, s, sessionstore.ChargeQuery{}), 1)
}

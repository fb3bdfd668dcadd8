package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// TestShared tests several stores on one new database, which random writers use at the same time.
// open returns a further store on it, and closes it in the test's cleanup. killed, if not nil, runs
// a program that calls [Work] with such a store and its standard output, kills it after some lines
// of it, and returns the output. 8 of them run at once, 16 in all, or 504 if ACP_AGENT_VOLUME is
// set, which also doubles what the writers do.
func TestShared(
	t *testing.T, open Open, killed func(t *testing.T, lines int) (journal []byte, err error),
) {
	const stores, workers, processes = 3, 2, 8
	operations, kills := 25, 2*processes
	if os.Getenv("ACP_AGENT_VOLUME") != "" {
		operations, kills = 50, 63*processes
	}
	t.Run("S2, S6/stores that are opened at once", func(t *testing.T) {
		const openers = 16
		var all sync.WaitGroup
		for i := range openers {
			s := open(t).For("opener")
			all.Go(func() { Create(t, s, strconv.Itoa(i)) })
		}
		all.Wait()
		found := listAll(t, open(t).For("opener"), sessionstore.Query{})
		require.Len(t, found, openers)
	})
	var journals [stores * workers]bytes.Buffer
	t.Run("S2, S3, N3/random writers in several stores", func(t *testing.T) {
		var all sync.WaitGroup
		var failures [stores * workers]error
		for i := range stores {
			s := open(t)
			for j := range workers {
				n := i*workers + j
				all.Go(func() { failures[n] = Work(t.Context(), s, strconv.Itoa(n), operations, &journals[n]) })
			}
		}
		all.Wait()
		require.NoError(t, errors.Join(failures[:]...))
		requireStored(t, open(t), journals[:])
	})
	if killed == nil {
		return
	}
	t.Run("S1, S2, N3/processes that are killed", func(t *testing.T) {
		journals := journals[:]
		for round := 0; round < kills; round += processes {
			t.Run(strconv.Itoa(round), func(t *testing.T) { // closes the store
				var written [processes]bytes.Buffer
				var running sync.WaitGroup
				var failures [processes]error
				for i := range written {
					running.Go(func() {
						journal, err := killed(t, rand.IntN(40))
						written[i].Write(journal)
						failures[i] = err
					})
				}
				running.Wait()
				require.NoError(t, errors.Join(failures[:]...))
				journals = append(journals, written[:]...)
				requireStored(t, open(t), journals)
			})
			if t.Failed() {
				return
			}
		}
		acknowledged := 0
		for i := range journals {
			acknowledged += bytes.Count(journals[i].Bytes(), []byte("\n"))
		}
		t.Logf("%d kills, %d updates acknowledged", kills, acknowledged)
	})
}

// Work makes random changes to the sessions of two owners in a store that others use too, and
// writes to journal what was acknowledged. name is unique. The first error that a store may not
// return there ends it.
func Work(
	ctx context.Context, s sessionstore.Shared, name string, operations int, journal io.Writer,
) error {
	w := &worker{name: name, journal: journal, random: rand.New(rand.NewPCG(uint64(len(name)), rand.Uint64()))}
	for w.count = range operations {
		w.owner = []string{"", "ann"}[w.random.IntN(2)]
		w.store = s.For(w.owner)
		if err := w.step(ctx); err != nil && !mayHappen(err) {
			return fmt.Errorf("worker %s: %w", name, err)
		}
	}
	return nil
}

// mayHappen reports whether an error may be due to another worker or a deadline.
func mayHappen(err error) bool {
	return errors.As(err, new(*sessionstore.NotFoundError)) ||
		errors.As(err, new(*sessionstore.FencedError)) ||
		errors.Is(err, sessionstore.ErrDraft) || errors.Is(err, context.DeadlineExceeded)
}

type worker struct {
	name, owner string
	store       store
	journal     io.Writer
	random      *rand.Rand
	count       int
}

// maxSessions is the number of sessions of an owner above which one is deleted.
const maxSessions = 6

// step does one random operation, with a session that it finds in the list.
func (w *worker) step(ctx context.Context) error {
	page, err := w.store.List(ctx, sessionstore.Query{})
	if err != nil {
		return err
	}
	n := w.newSession()
	if len(page.Sessions) == 0 {
		_, err := w.store.Create(ctx, n)
		return err
	}
	id := page.Sessions[w.random.IntN(len(page.Sessions))].ID
	if len(page.Sessions) > maxSessions {
		return w.store.Delete(ctx, id)
	}
	switch w.random.IntN(10) {
	case 0:
		lease, err := w.store.Create(ctx, n)
		return cmp.Or(err, w.use(ctx, lease))
	case 1:
		n.StateKey, n.State = "", nil
		lease, err := w.store.Fork(ctx, id, n)
		return cmp.Or(err, w.use(ctx, lease))
	case 2:
		return w.importAll(ctx)
	case 3:
		err := w.store.Rename(ctx, id, w.name)
		err = cmp.Or(err, w.store.Archive(ctx, id), w.store.Unarchive(ctx, id))
		return err
	case 4:
		return w.extend(ctx, id)
	}
	a := sessionstore.Activation{Keys: n.Keys}
	if w.random.IntN(2) == 0 {
		a.State, a.StateKey = n.State, n.StateKey
	}
	lease, err := w.store.Activate(ctx, id, a)
	return cmp.Or(err, w.use(ctx, lease))
}

// newSession returns a session with an id that no other ever has, and one of a few state keys.
func (w *worker) newSession() sessionstore.Session {
	key := strconv.Itoa(w.random.IntN(4))
	return sessionstore.Session{
		ID:    sessionstore.ID(fmt.Sprintf("%s.%d", w.name, w.count)),
		Agent: explore(), Keys: Keys(panicking{}, "app"), State: []byte("state of " + key), StateKey: key,
	}
}

// importAll imports what an agent lists: a session for each state key. Then the agent forgets one.
func (w *worker) importAll(ctx context.Context) error {
	var all []sessionstore.Session
	l := sessionstore.Listed{Asked: time.Now().Add(time.Hour), StateKeys: map[string]bool{}}
	for i := range 4 {
		key := strconv.Itoa(i)
		n := w.newSession()
		all = append(all, sessionstore.Session{
			ID: n.ID + sessionstore.ID("."+key), StateKey: key, State: n.State, Keys: n.Keys, Title: "title",
		})
		l.StateKeys[key] = i > 0
	}
	w.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	_, err := w.store.Import(ctx, explore(), all, false)
	if err == nil {
		_, err = w.store.Retain(ctx, explore(), l)
	}
	return err
}

// extend adds to the history of a session.
func (w *worker) extend(ctx context.Context, id sessionstore.ID) error {
	draft, err := w.store.NewDraft(ctx, id)
	if err != nil {
		return err
	}
	if err := draft.Append(ctx, []update{say("more")}); err != nil {
		return err
	}
	lease, err := w.store.Activate(ctx, id, sessionstore.Activation{Keys: Keys(panicking{}, "app"), History: draft})
	return cmp.Or(err, w.use(ctx, lease))
}

// use writes to a session until it is taken over, or a deadline ends.
func (w *worker) use(ctx context.Context, l sessionstore.Lease) error {
	if w.random.IntN(4) == 0 {
		short, cancel := context.WithTimeout(ctx, time.Duration(w.random.IntN(3_000))*time.Microsecond)
		defer cancel()
		ctx = short
	}
	turn, err := w.store.BeginTurn(ctx, l, sessionstore.Turn{Title: "title"})
	if err != nil {
		return err
	}
	for i := range 1 + w.random.IntN(4) {
		word := fmt.Sprintf("word|%s|%s|%d|%d|%d", w.owner, l.ID, l.Generation, turn, i)
		if err := w.store.Append(ctx, l, []update{say(word), mode(word)}); err != nil {
			return err
		}
		fmt.Fprintln(w.journal, word)
	}
	if w.random.IntN(2) == 0 {
		n := w.newSession()
		if err := w.store.SaveState(ctx, l, n.State, n.StateKey); err != nil {
			return err
		}
	}
	return w.store.EndTurn(ctx, l, turn)
}

// panicking fails a test whose helpers run outside of it.
type panicking struct{}

func (panicking) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (panicking) FailNow()                          {}

// requireStored compares a store with what its workers acknowledged: nothing is lost, no writer
// wrote after a newer one, and nothing came to another owner.
func requireStored(t *testing.T, s sessionstore.Shared, journals []bytes.Buffer) {
	t.Helper()
	acknowledged := map[string][]string{}
	for i := range journals {
		for line := range strings.Lines(journals[i].String()) {
			line = strings.TrimSuffix(line, "\n")
			fields := strings.Split(line, "|")
			require.Len(t, fields, 6, line)
			acknowledged[fields[2]] = append(acknowledged[fields[2]], line)
		}
	}
	require.NotEmpty(t, acknowledged)
	for _, owner := range []string{"", "ann"} {
		own := s.For(owner)
		named := map[string]string{}
		for _, session := range listAll(t, own, sessionstore.Query{Agent: explore()}) {
			id := string(session.ID)
			words := map[string]bool{}
			last := int64(0)
			for _, text := range history(t, own, id) {
				at := strings.Index(text, "word|")
				if at < 0 {
					continue
				}
				word, _, _ := strings.Cut(text[at:], `"`)
				words[word] = true
				fields := strings.Split(word, "|")
				require.Equal(t, owner, fields[1], "%s has %s", id, word)
				generation, err := strconv.ParseInt(fields[3], 10, 64)
				require.NoError(t, err)
				require.GreaterOrEqual(t, generation, last, "%s has %s too late", id, word)
				last = generation
			}
			missing := slices.DeleteFunc(acknowledged[id], func(word string) bool { return words[word] })
			require.Empty(t, missing, "of session %s, which has %v", id, words)
			got := get(t, own, id)
			require.GreaterOrEqual(t, got.Generation, last)
			if got.StateKey != "" {
				require.Empty(t, named[got.StateKey], "two sessions have the key %s", got.StateKey)
				named[got.StateKey] = id
				found, err := own.Named(t.Context(), explore(), got.StateKey)
				require.NoError(t, err)
				require.Equal(t, session.ID, found)
			}
		}
	}
}

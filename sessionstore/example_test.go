package sessionstore_test

import (
	"context"
	"fmt"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
)

func Example() {
	ctx := context.Background()
	store := sqlite.NewMemory()
	defer store.Close()

	roots, err := workspace.NewRoots("/src/app", []string{"/src/lib"})
	if err != nil {
		fmt.Println(err)
		return
	}
	keys := sessionstore.Keys{Roots: roots}
	for _, dir := range roots.All() {
		keys.Real = append(keys.Real, dir) // where no links are
	}
	lease, _ := store.Create(ctx, sessionstore.Session{ID: "1", Agent: sessionstore.Agent{Kind: "explore"}, Keys: keys})

	// A turn: its prompt is stored before anything happens, its answer as it comes.
	turn, _ := store.BeginTurn(ctx, lease, sessionstore.Turn{Title: "Where is the parser?", Prompt: []sessionstore.Update{
		parse(`{"update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Where is the parser?"}}}`),
	}})
	recorder := sessionstore.NewRecorder(func(ctx context.Context, segment []sessionstore.Update) error {
		return store.Append(ctx, lease, segment)
	}, sessionstore.RecorderOptions{})
	for _, word := range []string{"In ", "/src/lib."} {
		_ = recorder.Record(ctx, parse(fmt.Sprintf(
			`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}`, word)))
	}
	_ = recorder.Flush(ctx) // before the turn is answered
	_ = store.EndTurn(ctx, lease, turn)
	_ = recorder.Close(ctx)

	page, _ := store.List(ctx, sessionstore.Query{})
	fmt.Println(page.Sessions[0].Title)
	for u := range store.History(ctx, "1") {
		fmt.Println(u)
	}
	// Output:
	// Where is the parser?
	// {"update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Where is the parser?"}}}
	// {"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"In /src/lib."}}}
}

// noted is a store that says when a session is deleted.
type noted struct{ sessionstore.Store }

func (s noted) Delete(ctx context.Context, id sessionstore.ID) error {
	fmt.Println("deleting", id)
	return s.Store.Delete(ctx, id)
}

// A program that wants a store to do something else wraps it.
func ExampleStore() {
	store := noted{sqlite.NewMemory()}
	defer store.Close()
	fmt.Println(store.Delete(context.Background(), "sess_1"))
	// Output:
	// deleting sess_1
	// <nil>
}

func parse(raw string) sessionstore.Update {
	u, err := sessionstore.ParseUpdate([]byte(raw))
	if err != nil {
		panic(err)
	}
	return u
}

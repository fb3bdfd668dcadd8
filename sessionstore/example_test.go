package sessionstore_test

import (
	"context"
	"errors"
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
	lease, _ := store.Create(ctx, sessionstore.NewSession{ID: "1", Agent: sessionstore.Agent{Kind: "explore"}, Keys: keys})

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

// A store that cannot do something says which interface it lacks.
func ExampleAs() {
	var store sessionstore.Store = sqlite.NewMemory()
	defer store.Close()
	_, err := sessionstore.As[sessionstore.Archiver](store)
	fmt.Println(err)
	_, err = sessionstore.As[sessionstore.Watcher](store)
	fmt.Println(errors.Is(err, errors.ErrUnsupported), err)
	// Output:
	// <nil>
	// true this session store cannot do that: it is no sessionstore.Watcher
}

func parse(raw string) sessionstore.Update {
	u, err := sessionstore.ParseUpdate([]byte(raw))
	if err != nil {
		panic(err)
	}
	return u
}

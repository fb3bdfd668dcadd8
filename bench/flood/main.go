// Command flood is an ACP agent that answers each prompt with ten thousand updates, as fast as they are
// taken: the adapter, the store and the pipes, and nothing else. Its argument is the state directory.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

const updates = 10_000

func main() {
	store := sqlite.New(sqlite.Options{Dir: os.Args[1]})
	err := acp.Serve(context.Background(), os.Stdin, os.Stdout, acp.Options{
		Runtime: func() runtime.Runtime { return flood{} },
		Store:   store,
	})
	if closeErr := store.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// idle does nothing where a runtime or a session has nothing to do.
type idle struct{}

func (idle) Call(context.Context, string, runtime.Raw) runtime.Work { return nil }
func (idle) Notify(context.Context, string, runtime.Raw)            {}
func (idle) Cancel(runtime.Raw)                                     {}
func (idle) Close(context.Context) error                            { return nil }

type flood struct{ idle }

func (flood) Initialize(context.Context, runtime.Raw, runtime.Client) (runtime.Info, error) {
	return runtime.Info{Kind: "flood"}, nil
}

func (flood) Open(context.Context, runtime.Activation, runtime.Host) (runtime.Session, runtime.Opened, error) {
	return session{}, runtime.Opened{}, nil
}

type session struct{ idle }

func (session) Prompt(ctx context.Context, _ runtime.Raw, u runtime.Updates) runtime.Work {
	return func() (runtime.Raw, error) {
		for i := range updates {
			text := fmt.Sprintf(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"update %d "}}}`, i)
			if err := u.Update(ctx, json.RawMessage(text)); err != nil {
				return nil, err
			}
		}
		return runtime.Raw(`{"stopReason":"end_turn"}`), nil
	}
}

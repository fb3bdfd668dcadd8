// Command flood is an ACP agent that answers each prompt with ten thousand updates, as fast as they
// are taken: the adapter, the store and the pipes, and nothing else. Its argument is the state
// directory.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

const updates = 10_000

func main() {
	store := sqlite.New(sqlite.Options{Dir: os.Args[1]})
	err := acp.Serve(context.Background(), os.Stdin, os.Stdout, acp.Options{
		Backend: func() backend.Backend { return flood{} },
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

// idle does nothing where a backend or a session has nothing to do.
type idle struct{}

func (idle) Call(context.Context, string, backend.Raw) backend.Work { return nil }
func (idle) Notify(context.Context, string, backend.Raw)            {}
func (idle) Cancel(backend.Raw)                                     {}
func (idle) Close(context.Context) error                            { return nil }

type flood struct{ idle }

func (flood) Initialize(context.Context, backend.Raw, backend.Client) (backend.Info, error) {
	return backend.Info{Kind: "flood"}, nil
}

func (flood) Open(context.Context, backend.Activation, backend.Host) (backend.Session, backend.Opened, error) {
	return session{}, backend.Opened{}, nil
}

type session struct{ idle }

func (session) Prompt(ctx context.Context, _ backend.Raw, u backend.Updates) backend.Work {
	return func() (backend.Raw, error) {
		for i := range updates {
			if err := u.Update(ctx, backend.Text(fmt.Sprintf("update %d ", i))); err != nil {
				return nil, err
			}
		}
		return backend.Raw(`{"stopReason":"end_turn"}`), nil
	}
}

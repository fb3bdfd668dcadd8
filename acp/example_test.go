package acp_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// echo is the smallest agent: it says what it hears.
type echo struct{}

func (echo) Initialize(context.Context, backend.Raw, backend.Client) (backend.Info, error) {
	return backend.Info{Kind: "echo"}, nil
}

func (echo) Open(
	context.Context, backend.Activation, backend.Host,
) (backend.Session, backend.Opened, error) {
	return echoSession{}, backend.Opened{}, nil
}

func (echo) Call(context.Context, string, backend.Raw) backend.Work { return nil }
func (echo) Notify(context.Context, string, backend.Raw)            {}
func (echo) Close(context.Context) error                            { return nil }

type echoSession struct{ echo }

func (echoSession) Prompt(ctx context.Context, params backend.Raw, u backend.Updates) backend.Work {
	return func() (backend.Raw, error) {
		typed, err := prompts.Typed(params)
		for _, block := range typed {
			err = cmp.Or(err, u.Update(ctx, backend.Text(block.Text)))
		}
		return backend.Stopped(sdk.StopReasonEndTurn), err
	}
}

func (echoSession) Cancel(backend.Raw) {}

// A host gives its own agent sessions with several roots.
func Example() {
	editor, in := io.Pipe()
	out, agent := io.Pipe()
	store := sqlite.NewMemory()
	defer store.Close()
	served := make(chan error, 1)
	go func() {
		served <- acp.Serve(context.Background(), editor, agent, acp.Options{
			Backend: func() backend.Backend { return echo{} },
			Store:   store,
		})
	}()
	answers := bufio.NewScanner(out)
	say := func(line string) string {
		fmt.Fprintln(in, line)
		for answers.Scan() && !strings.Contains(answers.Text(), `"id":`) {
		}
		return answers.Text()
	}
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	opened := say(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":` +
		rootsParams("", dir) + `}`)
	fmt.Println(strings.Contains(opened, `"sessionId":"sess_`))
	fmt.Println(say(`{"jsonrpc":"2.0","id":3,"method":"session/new","params":` +
		rootsParams("", dir, "lib") + `}`))
	in.Close()
	fmt.Println(<-served)
	// Output:
	// true
	// {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"additionalDirectories[0] \"lib\" is not absolute: give an absolute path","data":{"violations":[{"field":"additionalDirectories","index":0,"value":"lib","reason":"relative"}]}}}
	// <nil>
}

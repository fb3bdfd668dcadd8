package pipes_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/interop/pipes"
	"github.com/acp-agent/acp-agent/internal/test/interop/scripted"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

func TestMain(m *testing.M) { proctest.Main(m, play) }

func play(role string) int {
	if role == "broken" {
		fmt.Print("no newline")
		fmt.Fprint(os.Stderr, "complaint")
		return 3
	}
	return scripted.Play()
}

func start(t *testing.T, as string) (*pipes.Process, context.Context, *strings.Builder) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	var stderr strings.Builder
	p, err := pipes.Start(pipes.Options{Command: []string{proctest.Executable()}, Env: proctest.Env(as), Dir: t.TempDir(), Stderr: &stderr})
	require.NoError(t, err)
	return p, ctx, &stderr
}

func TestUnfinishedLine(t *testing.T) {
	p, ctx, stderr := start(t, "broken")
	code, err := p.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, 3, code)
	require.Equal(t, "complaint", stderr.String())
	require.Equal(t, []pipes.Line{{FromAgent: true, Text: "no newline"}}, p.Lines())
	_, err = p.Response(ctx, 0, 1)
	require.ErrorIs(t, err, pipes.ErrEnded)
}

func TestKill(t *testing.T) {
	p, ctx, _ := start(t, "scripted")
	require.NoError(t, p.Kill())
	_, err := p.Wait(ctx)
	require.NoError(t, err)
	_, err = p.Call(ctx, "initialize", nil)
	require.Error(t, err)
}

func TestAwaitReturnsTheCauseOfItsContext(t *testing.T) {
	p, ctx, _ := start(t, "scripted")
	short, cancel := context.WithCancel(ctx)
	cancel()
	_, err := p.Call(short, "initialize", map[string]any{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = p.Wait(short)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, p.CloseInput())
	code, err := p.Wait(ctx)
	require.NoError(t, err)
	require.Zero(t, code)
}

func ExampleStart() {
	ctx := context.Background()
	p, err := pipes.Start(pipes.Options{Command: []string{proctest.Executable()}, Env: proctest.Env("scripted")})
	if err != nil {
		fmt.Println(err)
		return
	}
	var made struct{ SessionID string }
	m, err := p.Call(ctx, "session/new", map[string]any{"cwd": "/src", "mcpServers": []any{}})
	if err == nil {
		err = m.Decode(&made)
	}
	fmt.Println(made.SessionID, err)
	_ = p.CloseInput()
	fmt.Println(p.Wait(ctx))
	// Output:
	// scripted-0 <nil>
	// 0 <nil>
}

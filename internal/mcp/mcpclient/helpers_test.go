package mcpclient_test

//lint:file-ignore SA1019 the MCP SDK deprecates roots and log messages (SEP-2577); they are supported for existing clients and servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestMain(m *testing.M) { proctest.Main(m, runRole) }

// patience bounds waits for what must happen.
const patience = volume.Patience

// host declines what servers ask, and collects what they show.
type host struct{ shown logtest.Text }

var _ mcpclient.Host = (*host)(nil)

func (h *host) Elicit(context.Context, mcpclient.ServerID, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: "decline"}, nil
}

func (h *host) ElicitComplete(context.Context, mcpclient.ServerID, string) error { return nil }

func (h *host) SignIn(context.Context, mcpclient.ServerID, *url.URL, string) error {
	return errors.New("not in this test")
}

func (h *host) HasModel() bool { return false }

func (h *host) Sample(context.Context, mcpclient.ServerID, *mcp.CreateMessageWithToolsParams) (*mcp.CreateMessageWithToolsResult, error) {
	return nil, errors.New("not in this test")
}

func (h *host) Show(_ context.Context, message string) error {
	_, err := fmt.Fprintln(&h.shown, message)
	return err
}

// oneTry are the options of a set that starts a server once.
var oneTry = mcpclient.Options{}.With(mcpclient.Limits{MaxRestarts: 1})

// fixture is a set and its host.
type fixture struct {
	*mcpclient.Set
	t    testing.TB
	host *host
	logs *logtest.Text
}

// newFixture returns a set that is closed at the end of the test.
func newFixture(t testing.TB, o mcpclient.Options) *fixture {
	t.Helper()
	return newFixtureWith(t, make(chan struct{}, 8), o)
}

func newFixtureWith(t testing.TB, starting chan struct{}, o mcpclient.Options) *fixture {
	t.Helper()
	f := &fixture{t: t, host: &host{}, logs: &logtest.Text{}}
	o.Logger = f.logs.Logger(slog.LevelDebug)
	f.Set = mcpclient.NewSet(starting, o.WithBackoff(10*time.Millisecond).WithPatience(patience))
	t.Cleanup(func() { require.NoError(t, f.Close(context.Background())) })
	return f
}

// serving returns a set with servers, whose session has a new folder.
func serving(t testing.TB, o mcpclient.Options, configs ...mcpclient.Config) *fixture {
	t.Helper()
	f := newFixture(t, o)
	f.change(roottest.Open(t, folder(t)), configs...)
	return f
}

// change prepares and commits a change.
func (f *fixture) change(w *workspace.Workspace, configs ...mcpclient.Config) {
	f.t.Helper()
	c, err := f.Prepare(w, configs)
	require.NoError(f.t, err)
	c.Commit(f.host)
}

// call calls a tool and returns the text of its result.
func (f *fixture) call(name, arguments string) string {
	f.t.Helper()
	text, err := f.try(name, arguments)
	require.NoError(f.t, err, "%s\n%s", name, f.logs)
	return text
}

func (f *fixture) try(name, arguments string) (string, error) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	return f.send(ctx, name, arguments)
}

// send calls a tool and returns the text of its result.
func (f *fixture) send(ctx context.Context, name, arguments string) (string, error) {
	t, err := f.Tool(ctx, name)
	if err != nil {
		return "", err
	}
	result, err := f.Call(ctx, t, json.RawMessage(arguments), func(context.Context, *mcp.ProgressNotificationParams) {})
	if err != nil {
		return "", err
	}
	text := textOf(result.Content)
	if result.IsError {
		err = fmt.Errorf("the tool failed: %s", text)
	}
	return text, err
}

// listing returns what the first server lists that is ready.
func (f *fixture) listing() acpmcp.Listing {
	f.t.Helper()
	listings, err := f.List(f.t.Context())
	require.NoError(f.t, err)
	listing := <-listings
	require.NoError(f.t, listing.Err)
	return listing
}

// failed starts the servers, of which the first fails, and returns its status.
func (f *fixture) failed() acpmcp.Status {
	f.t.Helper()
	_, err := mcptest.ListTools(f.t.Context(), f)
	require.NoError(f.t, err)
	return f.state(acpmcp.Failed)
}

func textOf(blocks []mcp.Content) string {
	var texts []string
	for _, block := range blocks {
		if b, ok := block.(*mcp.TextContent); ok {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// folder creates a directory with files, given as name and content in turn, and returns its real
// path.
var folder = dirtest.New

// uris returns the root URIs of directories, one per line.
func uris(t testing.TB, dirs ...string) string {
	t.Helper()
	return strings.Join(mcptest.URIs(t, dirs...), "\n")
}

// state waits until the first server is in a state and returns its status.
func (f *fixture) state(state acpmcp.State) acpmcp.Status {
	f.t.Helper()
	var status acpmcp.Status
	require.Eventually(f.t, func() bool {
		status = f.Servers()[0]
		return status.State == state
	}, patience, 5*time.Millisecond, "never %s: %v\n%s", state, status, f.logs)
	return status
}

// runRole runs this binary as a server.
func runRole(role string) int {
	if role == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
		return proctest.HoldOn()
	}
	if proctest.Hold() != nil {
		return 1
	}
	switch role {
	case "sdk":
		return mcptest.PlayTools()
	case "tee": // records what the server behind it is sent
		return runTee()
	case "silent": // reads everything and answers nothing
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	case "exit":
		fmt.Fprintln(os.Stderr, "no licence found; token is "+os.Getenv("TOKEN"))
		return 3
	default:
		return mcptest.PlayRaw(role)
	}
}

// runTee runs the server given by its arguments.
func runTee() int {
	in, err := proctest.OpenInput()
	if err != nil {
		return 1
	}
	behind := exec.Command(os.Args[1], os.Args[2:]...)
	behind.Stdin, behind.Stdout, behind.Stderr = in, os.Stdout, os.Stderr
	_ = behind.Run()
	return 0
}

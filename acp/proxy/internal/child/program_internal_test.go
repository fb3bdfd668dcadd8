package child

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/scripted"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/internal/text/secret"
)

func TestMain(m *testing.M) {
	proctest.Main(m, func(string) int { return scripted.Play() })
}

// plain begins the script of an agent.
const plain = "await initialize\nanswer initialize {\"protocolVersion\":1}\n"

// initialize are params.
var initialize = backend.Raw(`{"protocolVersion":1}`)

// newProgram returns the program of a scripted agent. What c lacks is added.
func newProgram(t *testing.T, script string, c Config) *Program {
	t.Helper()
	if c.Command.Path == "" {
		c.Command, _ = scripted.Command(t, script)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Secrets = secret.OfCommand(c.Command.Args, c.Command.Env)
	c.Admit = func(context.Context) (func(), error) { return func() {}, nil }
	c.Limits = c.Limits.WithDefaults()
	c.Limits.ProcessGrace = volume.Patience
	p := New(c)
	t.Cleanup(func() { require.NoError(t, p.Close(context.Background())) })
	return p
}

func TestSlowInitialize(t *testing.T) {
	var log logtest.Text
	p := newProgram(t, "", Config{Logger: log.Logger(slog.LevelWarn),
		Limits: Limits{StartNotice: time.Nanosecond, StartTimeout: time.Second}})
	require.ErrorContains(t, p.Initialize(t.Context(), initialize, nil),
		"did not answer initialize within 1s")
	require.Contains(t, log.String(), "it may be installing itself")
}

func TestInitializeErrors(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		limits Limits
		says   []string
	}{
		"hangs": {"", Limits{StartTimeout: time.Millisecond},
			[]string{"did not answer initialize within 1ms", "log", "child=scripted"}},
		"ends": {"stderr not logged in\nexit 4\n", Limits{},
			[]string{"exit status 4", "not logged in"}},
		"ends well": {"stderr use --acp\nexit 0\n", Limits{},
			[]string{"exit status 0: use --acp; run its command in a terminal to see more"}},
		"ends in silence": {"exit 5\n", Limits{},
			[]string{"exit status 5; it wrote nothing to its stderr"}},
		"no ACP": {"await initialize\n" + `refuse initialize {"code":-32601,"message":"no"}` + "\n",
			Limits{}, []string{"does not speak ACP", "initialize", "check its command"}},
		"repeats its input": {"await initialize\n" +
			`send {"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}` + "\nawait reply 7\n" +
			`refuse initialize {"code":-32601,"message":"no"}` + "\n",
			Limits{}, []string{"does not speak ACP"}},
		"other version": {"await initialize\n" + `answer initialize {"protocolVersion":2}` + "\n",
			Limits{}, []string{"speaks version 2 of ACP"}},
		"refuses": {"await initialize\n" + `refuse initialize {"code":-32000,"message":"log in"}` +
			"\n",
			Limits{}, []string{"log in"}},
		"no object": {"await initialize\n" + `answer initialize 7` + "\n",
			Limits{}, []string{"cannot read"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := newProgram(t, c.script, Config{Limits: c.limits}).Initialize(t.Context(),
				initialize, nil)
			for _, text := range c.says {
				require.ErrorContains(t, err, text)
			}
		})
	}
}

func TestCommandNotFound(t *testing.T) {
	p := newProgram(t, "", Config{Command: profiles.Command{Path: "no-such-agent"},
		Profile: profiles.Profile{Title: "Mine",
			Start: profiles.Start{Install: "npm install -g mine"}}})
	err := p.Initialize(t.Context(), initialize, nil)
	require.ErrorIs(t, err, exec.ErrNotFound)
	require.ErrorContains(t, err, "PATH")
	require.ErrorContains(t, err, "; to install Mine: npm install -g mine")
	require.Empty(t, p.list(), "it leaves nothing behind")
}

func TestInitializeAgain(t *testing.T) {
	p := newProgram(t, plain, Config{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.Initialize(ended, initialize, nil), context.Canceled)
	require.NoError(t, p.Initialize(t.Context(), initialize, nil))
}

func TestBackoff(t *testing.T) {
	var log logtest.Text
	p := newProgram(t, "exit 4\n", Config{Logger: log.Logger(slog.LevelInfo),
		Limits: Limits{Backoff: time.Millisecond}})
	for range 4 {
		require.ErrorContains(t, p.Initialize(t.Context(), initialize, nil), "exit status 4")
	}
	require.Contains(t, log.String(), "waiting before the next start")
	require.Contains(t, log.String(), "delay=1ms")
	require.Contains(t, log.String(), "delay=2ms")
}

// A place has one child, also if the one before ends while this one is started.
func TestOneChildInAPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "end")
	p := newProgram(t, plain+"until "+file+"\n", Config{})
	at := Place{Apart: 1}
	before, err := p.At(t.Context(), at)
	require.NoError(t, err)
	before.stop(nil)
	p.config.Admit = func(context.Context) (func(), error) {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		<-before.Done()
		return func() {}, nil
	}
	c, err := p.At(t.Context(), at)
	require.NoError(t, err)
	again, err := p.At(t.Context(), at)
	require.NoError(t, err)
	require.True(t, c == again)
	require.Len(t, p.list(), 1)
}

// A child other than the main one ends with its last user. One that ends gets no users.
func TestUses(t *testing.T) {
	p := newProgram(t, plain, Config{})
	for _, at := range []Place{{}, {Apart: 1}} {
		c, err := p.At(t.Context(), at)
		require.NoError(t, err)
		first, second := c.AddUser(), c.AddUser()
		require.NoError(t, c.RemoveUser(t.Context()))
		first()
		require.True(t, c.Running())
		require.False(t, c.uses.stopIfIdle(), "a pin is left")
		second()
		require.NoError(t, c.RemoveUser(t.Context()))
		require.Equal(t, at.isMain(), c.Running())
		require.Equal(t, at.isMain(), c.Pin() != nil)
	}
}

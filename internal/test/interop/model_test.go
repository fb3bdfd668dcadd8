package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/interop/terminals"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
	"github.com/acp-agent/acp-agent/workspace"
)

// modelStage is what programs with a model need, and outlives them.
type modelStage struct {
	model *modelserver.Server
	dir   string // contains everything that the program writes
	// start starts the program's process; nil means that of exec.Cmd.
	start func(*exec.Cmd) error
	// noTerminals is set for editors that do not offer terminals.
	noTerminals bool
}

// onModelStage starts a model, and configures it.
func onModelStage(t *testing.T) *modelStage {
	t.Helper()
	model, err := modelserver.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, model.Close()) })
	s := &modelStage{model: model, dir: folder(t)}
	s.configure(t, fmt.Sprintf(`"baseURL": %q`, model.URL()+"/v1"))
	return s
}

// configure writes the program's configuration, with a model called local that has these members.
func (s *modelStage) configure(t *testing.T, members string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "config.json"), []byte(`{"models": {"local": {`+members+`}}}`), 0o600))
}

// editor is a client with a program that answers with the model called local. It allows everything,
// runs commands in terminals, and keeps what it sees.
type editor struct {
	*client.Client
	t   *testing.T
	cmd *exec.Cmd
	// leave ends the program as an editor does, once.
	leave  func()
	stderr *logtest.Text

	terminals *terminals.Terminals

	mu     sync.Mutex
	lines  []rawrpc.Line
	asked  []sdk.RequestPermissionRequest
	answer sdk.PermissionOptionKind
}

// edit starts the program.
func (s *modelStage) edit(t *testing.T) *editor {
	t.Helper()
	cmd := exec.Command(program.Path(), "--config", filepath.Join(s.dir, "config.json"), "--state-dir", filepath.Join(s.dir, "state"), "--model", "local")
	e := &editor{t: t, cmd: cmd, stderr: &logtest.Text{}, terminals: terminals.New(nil), answer: sdk.PermissionOptionKindAllowOnce}
	cmd.Stderr = e.stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	start := s.start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	require.NoError(t, start(cmd))
	e.Client = client.New(out, in, client.Options{
		Name: "editor", Capabilities: json.RawMessage(fmt.Sprintf(`{"terminal":%t}`, !s.noTerminals)), Permission: e.permit, Trace: e.tap,
		Requests: e.terminals.Requests(),
	})
	served := make(chan error, 1)
	go func() { served <- e.Serve(context.Background()) }()
	e.leave = sync.OnceFunc(func() {
		_ = in.Close()
		e.terminals.Close()
		err := <-served
		ended := cmd.Wait()
		if cmd.ProcessState.ExitCode() >= 0 { // not killed
			assert.NoError(t, errors.Join(err, ended), "standard error: %s", e.stderr)
		}
	})
	t.Cleanup(func() {
		e.leave()
		valid(t, e.lines)
	})
	_, err = e.Initialize(within(t))
	require.NoError(t, err, "standard error: %s", e.stderr)
	return e
}

// kill kills the program.
func (e *editor) kill() {
	e.t.Helper()
	require.NoError(e.t, e.cmd.Process.Kill())
	e.leave()
}

// tap records a line of either side.
func (e *editor) tap(sent bool, line []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(e.lines, rawrpc.Line{FromAgent: !sent, Text: string(line)})
}

// said returns what the program has written since a line.
func (e *editor) said(from int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all strings.Builder
	for _, line := range e.lines[from:] {
		if line.FromAgent {
			all.WriteString(line.Text)
			all.WriteByte('\n')
		}
	}
	return all.String()
}

// count returns the number of lines so far.
func (e *editor) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.lines)
}

// permit answers a request for permission.
func (e *editor) permit(_ context.Context, r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, r)
	for _, option := range r.Options {
		if option.Kind == e.answer {
			return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(option.OptionId)}, nil
		}
	}
	return sdk.RequestPermissionResponse{}, fmt.Errorf("no option with kind %s", e.answer)
}

// questions returns the titles of the requests for permission so far.
func (e *editor) questions() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	titles := []string{}
	for _, r := range e.asked {
		titles = append(titles, *r.ToolCall.Title)
	}
	return titles
}

// modelSession is a session of an editor.
type modelSession struct {
	*editor
	id    string
	roots workspace.Roots
	stage *modelStage
}

// open creates a session.
func (s *modelStage) open(e *editor, setup client.Setup) *modelSession {
	e.t.Helper()
	session, err := e.NewSession(within(e.t), setup)
	require.NoError(e.t, err, "standard error: %s", e.stderr)
	return &modelSession{editor: e, id: session.ID, roots: setup.Roots, stage: s}
}

// rootsOf returns a session's folders, cwd first.
func rootsOf(t *testing.T, dirs ...string) workspace.Roots {
	t.Helper()
	roots, err := workspace.NewRoots(dirs[0], dirs[1:])
	require.NoError(t, err)
	return roots
}

// prompt runs a turn and returns what the program has written meanwhile, and the requests to the
// model that are part of it.
func (m *modelSession) prompt(words string, orders ...modelserver.Order) (said string, turn []modelserver.Request, end client.TurnEnd) {
	m.t.Helper()
	from := m.count()
	before := len(m.stage.model.Requests())
	end, err := m.Prompt(within(m.t), m.id, sdk.TextBlock(modelserver.Prompt(words, orders...)))
	require.NoError(m.t, err, "standard error: %s", m.stderr)
	said = m.said(from)
	turn = slices.DeleteFunc(m.stage.model.Requests()[before:], func(r modelserver.Request) bool { return !r.Asks() })
	return said, turn, end
}

// awaitTool waits until an MCP server offers a tool. Turns do not wait long for servers.
func (m *modelSession) awaitTool(name string) {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		from := m.count()
		_, err := m.Prompt(within(m.t), m.id, sdk.TextBlock("/mcp tools"))
		return err == nil && strings.Contains(m.said(from), name)
	}, patience, 10*time.Millisecond, name)
}

// do calls a method whose result is of no interest.
func (m *modelSession) do(method string, params map[string]any) {
	m.t.Helper()
	params["sessionId"] = m.id
	text, err := json.Marshal(params)
	require.NoError(m.t, err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err = m.Call(ctx, method, text)()
	require.NoError(m.t, err)
}

// setMode changes the session's mode.
func (m *modelSession) setMode(mode string) {
	m.t.Helper()
	m.do("session/set_mode", map[string]any{"modeId": mode})
}

// updates returns the lines with a text.
func updates(said, text string) (found []string) {
	for line := range strings.Lines(said) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// chunks returns the texts of the updates of a kind.
func chunks(said, kind string) string {
	var all strings.Builder
	for _, line := range updates(said, kind) {
		var m struct {
			Params struct {
				Update struct{ Content struct{ Text string } }
			}
		}
		_ = json.Unmarshal([]byte(line), &m)
		all.WriteString(m.Params.Update.Content.Text)
	}
	return all.String()
}

// acp-factory names no folders, so its sessions and their forks have the declared ones. The fork of
// its README names no directory either: the error says what to send.
func TestFactoryForks(t *testing.T) {
	t.Parallel()
	packages := filepath.Dir(npmtest.File(t, "testdata/node-clients", "acp-factory"))
	state, cwd, lib := filepath.Join(t.TempDir(), "state"), folder(t, "a.txt", "tangerine\n"), folder(t)
	cmd := exec.CommandContext(within(t), npmtest.Node(t), filepath.Join(filepath.Dir(packages), "factory.mjs"),
		cwd, program.Path(), "--state-dir", state, "--dir", lib)
	out, err := cmd.Output()
	require.NoError(t, err)
	var found struct {
		Session, Refused, Loaded string
		Forks                    []string
	}
	require.NoError(t, json.Unmarshal(out, &found), "%s", out)
	require.Equal(t, found.Session, found.Loaded)
	require.Equal(t, "cwd is missing: give an absolute path", found.Refused)

	a := startIn(t, state).initialize()
	ids, made := append(found.Forks, found.Session), []listed{}
	for _, id := range ids {
		made = append(made, listed{SessionID: id, Cwd: cwd, AdditionalDirectories: []string{lib}})
	}
	require.ElementsMatch(t, made, a.list(nil))
	for _, id := range ids {
		from := a.Count()
		a.call("session/load", map[string]any{"sessionId": id, "cwd": cwd, "mcpServers": []any{}}, nil)
		require.Contains(t, a.updates(from, id), "/search tangerine", "A14: a fork has the conversation")
	}
}

// The agent may read in the session's folders without a question if a flag, a file or the
// configuration says so.
//
// Clause A30.
func TestAllowRead(t *testing.T) {
	cwd, lib, outside := folder(t), folder(t, "b.txt", "b"), folder(t, "c.txt", "c")
	config := file(t, "config.json", `{"permissions":{"allow":["read"]}}`)
	only, none := file(t, "only.json", "{\"allow\": [\"read\"], // comments\n}"), file(t, "none.json", `{}`)
	request := func(kind, path string) string {
		return `ask session/request_permission {"toolCall":{"toolCallId":"t","title":"Look","kind":"` + kind + `","locations":[{"path":` + quoted(path) + `}]},` +
			`"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"},{"optionId":"no","kind":"reject_once","name":"No"}]}`
	}
	inside := filepath.Join(lib, "b.txt")
	for name, c := range map[string]struct {
		args    []string
		allowed bool
	}{
		"by default":                {nil, false},
		"flag":                      {[]string{"--allow", "read"}, true},
		"configuration":             {[]string{"--config", config}, true},
		"another file":              {[]string{"--permissions", only}, true},
		"no rules but those of one": {[]string{"--config", config, "--permissions", none}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t, append(c.args, behind()...)...).initialize()
			id := a.open(cwd, lib)
			turn := a.ask(id, request("read", inside), "reject_once")
			if c.allowed {
				require.Empty(t, turn.questions)
				require.Contains(t, turn.updates, "Look (allowed by the rule `read`)")
			} else {
				require.Len(t, turn.questions, 1)
				require.NotContains(t, turn.updates, "allowed by")
			}
			require.Len(t, a.ask(id, request("read", filepath.Join(outside, "c.txt")), "reject_once").questions, 1)
			require.Len(t, a.ask(id, request("edit", inside), "reject_once").questions, 1)
		})
	}
}

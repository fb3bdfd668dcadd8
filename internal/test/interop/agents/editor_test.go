package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/interop/terminals"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
)

// patience bounds every wait, so that a hang fails instead of hanging.
const patience = volume.Patience

// stage is the environment of a test: an agent, its home, its model, and the folders of a project.
// It outlives the processes started in it.
type stage struct {
	subject subject
	env     []string
	home    string
	state   string // the program's
	model   *modelserver.Server

	// declares are further capabilities of its editors.
	declares json.RawMessage

	cwd, first, second string
}

// onStage prepares a stage whose folders first and second contain a file fruit.txt with "banana".
func onStage(t *testing.T, s subject) *stage {
	t.Helper()
	return onStageAt(t, s, func(url string) string { return url })
}

// onStageAt is onStage with another address for the model's server.
func onStageAt(t *testing.T, s subject, at func(url string) string) *stage {
	t.Helper()
	s.file(t, s.modules, s.program)
	model, err := modelserver.Start()
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, model.Close())
		require.Subset(t, s.elsewhere, model.Unknown(), "the agent asks for more than its model")
	})
	home := folder(t, "")
	return &stage{
		subject: s, env: s.settle(t, home, at(model.URL())), home: home, state: filepath.Join(home, "acp-agent"), model: model,
		cwd: folder(t, "apple\n"), first: folder(t, "banana\n"), second: folder(t, "banana\n"),
	}
}

// inNewFolders returns the same stage with folders of its own.
func (s *stage) inNewFolders(t *testing.T) *stage {
	t.Helper()
	other := *s
	other.cwd, other.first, other.second = folder(t, "apple\n"), folder(t, "banana\n"), folder(t, "banana\n")
	return &other
}

// folder creates a directory with a file fruit.txt, unless fruit is empty, and returns its real
// path.
func folder(t *testing.T, fruit string) string {
	t.Helper()
	if fruit == "" {
		return dirtest.New(t)
	}
	return dirtest.New(t, "fruit.txt", fruit)
}

// fruit returns the path of a folder's file.
func fruit(folder string) string { return filepath.Join(folder, "fruit.txt") }

// content returns the content of a folder's file.
func content(t *testing.T, folder string) string {
	t.Helper()
	text, err := os.ReadFile(fruit(folder))
	require.NoError(t, err)
	return string(text)
}

// roots are the session's folders, the first of them cwd.
func (s *stage) roots(t *testing.T, additional ...string) workspace.Roots {
	t.Helper()
	roots, err := workspace.NewRoots(s.cwd, additional)
	require.NoError(t, err)
	return roots
}

// files says what the editor does for its agent.
type files int

const (
	noFiles       files = iota
	withFiles           // it reads and writes files
	withTerminals       // it also runs commands
)

// editor is a client of a process. It records requests and updates, and grants each permission once
// unless it rejects them.
type editor struct {
	*client.Client
	t     *testing.T
	agent client.Agent

	mu      sync.Mutex
	updates []client.Update
	asked   []sdk.RequestPermissionRequest
	written []string // paths of fs/write_text_file
	read    []string // paths of fs/read_text_file
	rejects bool
	chooses sdk.PermissionOptionKind // if not ""

	terminals *terminals.Terminals
	judge     *judge
	leave     func()
	kill      func() // in place of leave
}

// alone starts the agent itself.
func (s *stage) alone(t *testing.T, f files) *editor {
	t.Helper()
	return s.open(t, f, append([]string{filepath.Join(s.home, "bin", s.subject.command[0])}, s.subject.command[1:]...))
}

// behind starts the program, with more arguments, and the agent behind it.
func (s *stage) behind(t *testing.T, f files, args ...string) *editor {
	t.Helper()
	command := append([]string{program.Path(), "--state-dir", s.state}, args...)
	return s.open(t, f, append(append(command, "--"), s.subject.command...))
}

// byName starts the program with a known agent behind it.
func (s *stage) byName(t *testing.T, f files, name string) *editor {
	t.Helper()
	return s.open(t, f, []string{program.Path(), "--state-dir", s.state, "--agent", name})
}

// open starts a process and introduces itself.
func (s *stage) open(t *testing.T, f files, command []string) *editor {
	t.Helper()
	// Many tests may share the process, one after the other.
	ctx, stop := context.WithTimeout(context.Background(), 5*patience)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.cwd, append(os.Environ(), s.env...), 10*time.Second
	alone := command[0] != program.Path()
	var already map[int]string
	if alone {
		already = s.processes(t)
	}
	var stderr logtest.Text
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())

	e := &editor{t: t, terminals: terminals.New(s.env), judge: newJudge(t, s.subject.own)}
	var said logtest.Text
	o := e.options(f, &said)
	o.Capabilities = s.declares
	if f == withTerminals {
		o.Capabilities, o.Requests = json.RawMessage(`{"terminal":true}`), e.terminals.Requests()
	}
	e.Client = client.New(out, in, o)
	served := make(chan error, 1)
	go func() { served <- e.Serve(ctx) }()
	killed := false
	e.kill = func() {
		killed = true
		_ = cmd.Process.Kill()
		e.leave()
	}
	e.leave = sync.OnceFunc(func() {
		defer stop()
		_ = in.Close()
		e.terminals.Close()
		if alone { // some agents do not end by themselves
			defer time.AfterFunc(5*time.Second, stop).Stop()
			<-served
			_ = cmd.Wait()
			s.endOthers(t, already)
			return
		}
		if killed {
			<-served
			_ = cmd.Wait()
			s.endOthers(t, already)
			return
		}
		assert.NoError(t, <-served) // FailNow would be a panic here
		assert.NoError(t, cmd.Wait(), "standard error: %s", &stderr)
	})
	t.Cleanup(func() {
		e.leave()
		if !alone {
			require.Empty(t, e.judge.all(), "W1")
		}
		if t.Failed() {
			t.Logf("%s\n%sstandard error:\n%s", strings.Join(command, " "), &said, &stderr)
		}
	})

	e.agent, err = e.Initialize(within(t))
	require.NoError(t, err)
	if s.subject.method != "" {
		require.NoError(t, e.Authenticate(within(t), s.subject.method))
	}
	return e
}

// endOthers ends the processes that run with the stage's home, except some. An agent that is killed
// leaves its own behind, which write to the home.
func (s *stage) endOthers(t *testing.T, except map[int]string) {
	t.Helper()
	for ctx := within(t); ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		left := s.processes(t)
		maps.DeleteFunc(left, func(pid int, _ string) bool {
			_, ok := except[pid]
			return ok
		})
		if len(left) == 0 {
			return
		}
		for pid := range left {
			if process, err := os.FindProcess(pid); err == nil {
				_ = process.Kill()
			}
		}
	}
}

// within returns a context for one wait.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// options returns the options of an editor that records requests and updates. said receives the
// lines of both sides.
func (e *editor) options(f files, said *logtest.Text) client.Options {
	o := client.Options{
		Name: "editor",
		Updates: func(_ context.Context, u client.Update) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.updates = append(e.updates, u)
		},
		Permission: func(_ context.Context, r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.asked = append(e.asked, r)
			kind := sdk.PermissionOptionKindAllowOnce
			if e.rejects {
				kind = sdk.PermissionOptionKindRejectOnce
			}
			kind = cmp.Or(e.chooses, kind)
			for _, option := range r.Options {
				if option.Kind == kind {
					return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(option.OptionId)}, nil
				}
			}
			return sdk.RequestPermissionResponse{}, fmt.Errorf("no option with kind %s", kind)
		},
		Trace: func(sent bool, line []byte) {
			mark := map[bool]string{false: "< ", true: "> "}[sent]
			_, _ = fmt.Fprintf(said, "%s%.2000s\n", mark, line)
			e.judge.tap(sent, line)
		},
	}
	if f >= withFiles {
		o.ReadTextFile = func(_ context.Context, r sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse, error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.read = append(e.read, r.Path)
			text, err := os.ReadFile(r.Path)
			return sdk.ReadTextFileResponse{Content: string(text)}, err
		}
		o.WriteTextFile = func(_ context.Context, r sdk.WriteTextFileRequest) (sdk.WriteTextFileResponse, error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.written = append(e.written, r.Path)
			return sdk.WriteTextFileResponse{}, os.WriteFile(r.Path, []byte(r.Content), 0o644)
		}
	}
	return o
}

// prompt runs a turn, which must end by itself, and returns the requests the model received.
func (s *stage) prompt(e *editor, session, words string, orders ...modelserver.Order) []modelserver.Request {
	e.t.Helper()
	before := len(s.model.Requests())
	end, err := e.Prompt(within(e.t), session, sdk.TextBlock(modelserver.Prompt(words, orders...)))
	require.NoError(e.t, err)
	require.Equal(e.t, sdk.StopReasonEndTurn, end.StopReason)
	var turn []modelserver.Request
	for _, r := range s.model.Requests()[before:] {
		if r.Asks() {
			turn = append(turn, r)
		}
	}
	require.NotEmpty(e.t, turn, "the model was not asked")
	return turn
}

// lend gives the editor to a subtest, as if it had recorded nothing, and returns it.
func (e *editor) lend(t *testing.T) *editor {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.t, e.updates, e.asked, e.written, e.read = t, nil, nil, nil, nil
	return e
}

// reject makes the editor reject all further permission requests.
func (e *editor) reject() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rejects = true
}

// heard returns the session's updates so far as text, one per line.
func (e *editor) heard(session string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all strings.Builder
	for _, u := range e.updates {
		if u.SessionID == session {
			all.Write(u.Update)
			all.WriteByte('\n')
		}
	}
	return all.String()
}

// permissions returns the permission requests so far, as text.
func (e *editor) permissions() string {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	text, err := json.Marshal(e.asked)
	require.NoError(e.t, err)
	return string(text)
}

// listed returns the ids of the sessions that a query finds.
func (e *editor) listed(q client.Query) []string {
	e.t.Helper()
	ids := []string{}
	for s, err := range e.Sessions(within(e.t), q) {
		require.NoError(e.t, err)
		ids = append(ids, s.ID)
	}
	return ids
}

package mcpserver

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// patience is how long a test waits for what must happen.
const patience = volume.Patience

// peer is a client controlled by a test, line by line.
type peer struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan message
	ended chan error
	last  int // the id of the last call that was sent by send
}

// message is a line from the server.
type message struct {
	ID     any
	Method string
	Result map[string]any
	Error  *struct {
		Code    int
		Message string
		Data    any
	}
	line string
}

// start serves a peer.
func start(t *testing.T, o Options) *peer {
	t.Helper()
	if o.Permit == nil {
		o.Permit = func(context.Context, tools.Change) error { return nil }
	}
	o.limits.grace = cmp.Or(o.limits.grace, patience)
	server, err := Open(t.Context(), o)
	require.NoError(t, err)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	p := &peer{t: t, in: toServer, lines: make(chan message, 10_000), ended: make(chan error, 1),
		last: 1000} // others are chosen by tests
	go func() {
		defer close(p.lines)
		scanner := bufio.NewScanner(fromServer)
		scanner.Buffer(nil, 1<<26)
		for scanner.Scan() {
			m := message{line: scanner.Text()}
			if err := json.Unmarshal(scanner.Bytes(), &m); err != nil {
				m.line = "no JSON: " + m.line
			}
			p.lines <- m
		}
	}()
	go func() {
		err := server.Serve(context.Background(), in, out)
		server.Close()
		_ = out.Close()
		p.ended <- err
	}()
	t.Cleanup(func() {
		_ = p.in.Close()
		for range p.lines { // until the server has ended
		}
	})
	return p
}

// serving serves directories to a peer that has no roots.
func serving(t *testing.T, dirs ...string) *peer {
	t.Helper()
	p := start(t, Options{Roots: rootSet(t, dirs...)})
	p.begin(withoutRoots)
	return p
}

// startWith serves a peer whose roots are directories.
func startWith(t *testing.T, o Options, dirs ...string) *peer {
	t.Helper()
	p := start(t, o)
	p.begin(withRoots)
	p.answer(p.question(), dirs...)
	return p
}

// write sends lines, in one write.
func (p *peer) write(lines ...string) {
	p.t.Helper()
	_, err := io.WriteString(p.in, strings.Join(lines, "\n")+"\n")
	require.NoError(p.t, err)
}

// read waits for the next line that does not say that the prompts have changed.
func (p *peer) read() message {
	p.t.Helper()
	for {
		if m := p.readAny(); m.Method != promptsChanged {
			return m
		}
	}
}

// readAny waits for the next line. That the prompts have changed is said a moment after the roots
// have.
func (p *peer) readAny() message {
	p.t.Helper()
	select {
	case m, ok := <-p.lines:
		require.True(p.t, ok, "the server has ended")
		require.NotContains(p.t, m.line, "no JSON")
		return m
	case <-time.After(patience):
		p.t.Fatal("no line from the server")
		return message{}
	}
}

// until reads lines until wanted accepts one.
func (p *peer) until(wanted func(message) bool) message {
	p.t.Helper()
	for {
		if m := p.read(); wanted(m) {
			return m
		}
	}
}

// answerTo reads lines until the response with this id.
func (p *peer) answerTo(id float64) message {
	p.t.Helper()
	return p.until(func(m message) bool { return m.Method == "" && m.ID == id })
}

// send calls a tool.
func (p *peer) send(tool, arguments string) (id int) {
	p.t.Helper()
	p.last++
	p.write(call(p.last, tool, arguments))
	return p.last
}

// ask calls a tool and waits for the answer.
func (p *peer) ask(tool, arguments string) message {
	p.t.Helper()
	return p.answerTo(float64(p.send(tool, arguments)))
}

// question reads lines until the next roots/list request.
func (p *peer) question() message {
	p.t.Helper()
	return p.until(func(m message) bool { return m.Method == "roots/list" })
}

// answer responds to a roots/list request.
func (p *peer) answer(question message, dirs ...string) {
	p.t.Helper()
	p.answerRaw(question, rootsResult(dirs...))
}

func (p *peer) answerRaw(question message, result string) {
	p.t.Helper()
	id, err := json.Marshal(question.ID)
	require.NoError(p.t, err)
	p.write(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`)
}

// rootsResult returns the result of roots/list.
func rootsResult(dirs ...string) string {
	roots := []string{}
	for _, dir := range dirs {
		d, err := workspace.ParseDir(dir)
		if err != nil {
			panic(err)
		}
		roots = append(roots, `{"uri":"`+d.URI()+`"}`)
	}
	return `{"roots":[` + strings.Join(roots, ",") + `]}`
}

const (
	withRoots    = `{"roots":{"listChanged":true}}`
	withoutRoots = `{}`
	changed      = `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`
	initialized  = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

func initialize(capabilities string) string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities +
		`,"clientInfo":{"name":"peer","version":"1"}}}`
}

// begin initializes a legacy client.
func (p *peer) begin(capabilities string) {
	p.t.Helper()
	p.write(initialize(capabilities))
	require.Equal(p.t, "2025-11-25", p.answerTo(0).Result["protocolVersion"])
	p.write(initialized)
}

// call returns a tools/call of a legacy client.
func call(id int, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments)
}

// callModern returns a tools/call of a modern client. more is appended to the members of params.
func callModern(id int, capabilities, tool, arguments, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"peer","version":"1"},`+
		`"io.modelcontextprotocol/clientCapabilities":%s}%s}}`, id, tool, arguments, capabilities, more)
}

// text returns the text of a tool result, preceded by "error: " if the tool failed.
func (m message) text() string {
	if m.Error != nil {
		return "protocol error: " + m.Error.Message
	}
	content, _ := m.Result["content"].([]any)
	if len(content) == 0 {
		return ""
	}
	first, _ := content[0].(map[string]any)
	text, _ := first["text"].(string)
	if m.Result["isError"] == true {
		text = "error: " + text
	}
	return text
}

// tree creates files in a new directory and returns its real path.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	return dirtest.Tree(files).Plant(t)
}

func read(path string) string {
	arguments, err := json.Marshal(map[string]string{"path": path})
	if err != nil {
		panic(err)
	}
	return string(arguments)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func structured(m message) map[string]any {
	s, _ := m.Result["structuredContent"].(map[string]any)
	return s
}

func dirURI(t *testing.T, path string) string {
	t.Helper()
	dir, err := workspace.ParseDir(path)
	require.NoError(t, err)
	return dir.URI()
}

func rootSet(t *testing.T, dirs ...string) workspace.Roots {
	t.Helper()
	roots, err := workspace.NewRoots(dirs[0], dirs[1:])
	require.NoError(t, err)
	return roots
}

// awaitEnd waits until a server has ended without an error.
func awaitEnd(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(patience):
		t.Fatal("the server is still running")
	}
}

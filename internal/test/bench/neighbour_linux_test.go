package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/pgtest"
	"github.com/acp-agent/acp-agent/internal/text/pause"
)

// BenchmarkNeighbour measures what another user notices while one user attacks the server over many
// connections. It reports the median and the longest time of a list, a load and a turn: before,
// during each attack and afterwards, on both stores, and how many messages the attack has sent.
func BenchmarkNeighbour(b *testing.B) {
	program := build(b, "cmd/acp-agent")
	var database pgtest.Server
	b.Cleanup(database.Stop)
	for _, store := range []struct {
		name    string
		address func() string
	}{
		{"SQLite", func() string { return "" }},
		{"PostgreSQL", func() string { return database.Address(b) }},
	} {
		b.Run(store.name, func(b *testing.B) {
			n := &neighbourhood{server: serve(b, program, store.address(), "--page"), cwd: b.TempDir()}
			defer n.server.end(b)
			b.Run("before", n.measure)
			for _, a := range attacks() {
				b.Run(a.name, func(b *testing.B) {
					stop := n.newAttacker(b).begin(b, a)
					n.measure(b)
					b.ReportMetric(float64(stop()), "sent")
				})
			}
			b.Run("after", n.measure)
		})
	}
}

// neighbourhood is a server with many users, whose folder is cwd.
type neighbourhood struct {
	server *server
	cwd    string
	users  int
}

// newUser makes a user, and returns the name and a token. The server slows down whoever asks for
// much, so nobody is used twice.
func (n *neighbourhood) newUser(b *testing.B) (name, token string) {
	b.Helper()
	n.users++
	name = fmt.Sprint("user", n.users)
	return name, n.server.token(b, name, n.cwd)
}

// attacker is a user who has many sessions, and one with a long history.
type attacker struct {
	*neighbourhood
	long string

	program, acpAgent, phone caller // the phone may only watch
}

// caller is what connections are made with.
type caller struct {
	header    http.Header
	protocols []string
}

func (n *neighbourhood) newAttacker(b *testing.B) *attacker {
	b.Helper()
	name, token := n.newUser(b)
	eve, err := n.server.dial(b, token)
	check(b, err)
	for range 50 {
		id, err := eve.open(b, n.cwd)
		check(b, err)
		_, err = eve.call(b, "session/close", map[string]any{"sessionId": id})
		check(b, err)
	}
	e := &attacker{neighbourhood: n}
	e.long, err = eve.open(b, n.cwd)
	check(b, err)
	for range 20 {
		check(b, eve.say(b, e.long, strings.Repeat("many words ", 5000)))
	}
	check(b, eve.conn.Close())
	e.program.header = http.Header{"Authorization": {"Bearer " + token}}
	e.acpAgent = caller{e.program.header, []string{"acp-agent"}}
	e.pair(b, name)
	return e
}

// pair pairs the phone.
func (e *attacker) pair(b *testing.B, name string) {
	b.Helper()
	link, err := exec.Command(e.server.program, "tokens", "pair", name, "--role", "watch", "--state-dir", e.server.state).Output()
	check(b, err)
	code := regexp.MustCompile(`#pair=(\S+)`).FindSubmatch(link)[1]
	proof := strings.Repeat("proof", 10)
	e.phone = caller{http.Header{"Origin": {e.page("")}, "Acp-Agent-Proof": {proof}}, []string{"acp.v1", "proof." + proof}}
	response, err := e.post(b.Context(), e.phone, "/pair", fmt.Sprintf(`{"code":%q}`, code))
	check(b, err)
	for _, c := range response.Cookies() {
		e.phone.header.Set("Cookie", c.Name+"="+c.Value)
	}
}

// page returns the URL of a path for browsers.
func (n *neighbourhood) page(path string) string {
	return "http" + strings.TrimSuffix(strings.TrimPrefix(n.server.url, "ws"), "/acp") + path
}

// post sends a request as the page does, and closes the body of the response.
func (n *neighbourhood) post(ctx context.Context, from caller, path, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.page(path), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = from.header.Clone()
	request.Header.Set("Content-Type", "application/json")
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s: %s", path, response.Status)
	}
	return response, err
}

// attack is what a user does on many connections at once.
type attack struct {
	name        string
	connections int
	do          act
}

// act does something on one connection until that or ctx ends, and counts the messages that it
// sends. When the connection ends, it is done again.
type act func(ctx context.Context, e *attacker, sent *atomic.Int64) error

const (
	// pipelined is how many requests of a connection are unanswered.
	pipelined = 32
	// mostSent is how many messages a connection sends without an answer. They wait in the network
	// when the server reads no more, and cost the sender little of the same processors.
	mostSent = 10_000
)

// attacks returns all attacks.
func attacks() []attack {
	request := func(method string, params func(e *attacker) map[string]any) act {
		return send(asProgram, pipelined, func(e *attacker, id int) string { return rawrpc.Request(id, method, params(e)) })
	}
	say := func(text string) act {
		return request("session/prompt", func(e *attacker) map[string]any { return prompt(e.long, text) })
	}
	shout := func(from func(*attacker) caller, message string) act {
		return send(from, mostSent, func(*attacker, int) string { return message })
	}
	opened := func(e *attacker) map[string]any {
		return map[string]any{"sessionId": e.long, "cwd": e.cwd, "mcpServers": []any{}}
	}
	lists := request("session/list", func(*attacker) map[string]any { return map[string]any{} })
	const ten, many = 10, 50
	return []attack{
		{"lists", ten, lists},
		{"loads", ten, request("session/load", opened)},
		{"forks", ten, request("session/fork", opened)},
		{"new sessions", ten, request("session/new", func(e *attacker) map[string]any {
			return map[string]any{"cwd": e.cwd, "mcpServers": []any{}}
		})},
		{"prompts of 1 MB", ten, say(strings.Repeat("word ", 200_000))},
		{"rules", ten, say("/permissions allow run " + strings.Repeat("((a|b)*c)*", 1000))},
		{"unknown methods", ten, send(asProgram, pipelined, func(_ *attacker, id int) string {
			return rawrpc.Request(id, fmt.Sprint("x/", id), map[string]any{})
		})},
		{"unasked answers", ten, shout(asProgram, `{"jsonrpc":"2.0","id":1,"result":{}}`)},
		{"garbage", ten, shout(asProgram, "garbage")},
		{"requests without a method", ten, shout(asProgram, `{"jsonrpc":"2.0","id":1}`)},
		{"idle confirmations", ten, confirm},
		{"lists, and connecting again", ten, func(ctx context.Context, e *attacker, sent *atomic.Int64) error {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			return lists(ctx, e, sent)
		}},
		{"answers of 4 MB from a phone", ten, shout(asPhone, `{"jsonrpc":"2.0","id":1,"result":"`+strings.Repeat("x", 4<<20)+`"}`)},
		{"changes of the page", ten, func(ctx context.Context, e *attacker, sent *atomic.Int64) error {
			sent.Add(1)
			_, err := e.post(ctx, e.phone, "/api/changes?id="+e.long, "")
			return err
		}},
		{"messages of 8 MB", many, shout(asProgram, rawrpc.Request(1, "x/large", map[string]any{"text": strings.Repeat("x", 8<<20)}))},
	}
}

func asProgram(e *attacker) caller { return e.program }

func asPhone(e *attacker) caller { return e.phone }

// connect connects without any of what a client heeds, and initializes the connection.
func (n *neighbourhood) connect(ctx context.Context, from caller) (*websocket.Conn, error) {
	conn, _, err := websocket.Dial(ctx, n.server.url, &websocket.DialOptions{HTTPHeader: from.header, Subprotocols: from.protocols})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(-1)
	return conn, conn.Write(ctx, websocket.MessageText, []byte(rawrpc.Request(0, "initialize", map[string]any{"protocolVersion": 1})))
}

// send sends messages as fast as they are taken, with up to so many unanswered. message gets the
// id.
func send(from func(*attacker) caller, unanswered int, message func(e *attacker, id int) string) act {
	return func(ctx context.Context, e *attacker, sent *atomic.Int64) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		conn, err := e.connect(ctx, from(e))
		if err != nil {
			return err
		}
		room := make(chan struct{}, unanswered)
		var reading sync.WaitGroup
		defer reading.Wait()
		defer func() { _ = conn.CloseNow() }()
		reading.Go(func() {
			defer cancel()
			for {
				var m rawrpc.Message
				_, line, err := conn.Read(ctx)
				if err != nil || json.Unmarshal(line, &m) != nil {
					return
				}
				if m.Method == "" {
					select {
					case <-room:
					default:
					}
				}
			}
		})
		for id := 1; ; id++ {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			sent.Add(1)
			if err := conn.Write(ctx, websocket.MessageText, []byte(message(e, id))); err != nil {
				return err
			}
		}
	}
}

// confirm says again and again, as another acp-agent, that nothing was received.
func confirm(ctx context.Context, e *attacker, sent *atomic.Int64) error {
	conn, err := e.connect(ctx, e.acpAgent)
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	ctx = conn.CloseRead(ctx)
	for range mostSent {
		sent.Add(1)
		if err := conn.Write(ctx, websocket.MessageBinary, make([]byte, 8)); err != nil {
			return err
		}
	}
	return nil
}

// begin begins an attack. It goes on until stop is called, which returns how much was sent.
func (e *attacker) begin(b *testing.B, a attack) (stop func() int64) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var sent atomic.Int64
	var all sync.WaitGroup
	for range a.connections {
		all.Go(func() {
			for ctx.Err() == nil {
				if a.do(ctx, e, &sent) != nil {
					_ = pause.For(ctx, time.Millisecond)
				}
			}
		})
	}
	return func() int64 {
		cancel()
		all.Wait()
		return sent.Load()
	}
}

// measure reports what a new user waits for.
func (n *neighbourhood) measure(b *testing.B) {
	_, token := n.newUser(b)
	ana, err := n.server.dial(b, token)
	check(b, err)
	own, err := ana.open(b, n.cwd)
	check(b, err)
	took := make(map[string][]time.Duration)
	for b.Loop() {
		const rounds, apart = 25, 100 * time.Millisecond
		for range rounds {
			for what, do := range map[string]func() error{
				"list": func() error {
					_, err := ana.call(b, "session/list", map[string]any{})
					return err
				},
				"load": func() error {
					_, err := ana.call(b, "session/load",
						map[string]any{"sessionId": own, "cwd": n.cwd, "mcpServers": []any{}})
					return err
				},
				"turn": func() error { return ana.say(b, own, "/roots") },
			} {
				var err error
				took[what] = append(took[what], timed(func() { err = do() }))
				check(b, err)
			}
			check(b, pause.For(b.Context(), apart))
		}
	}
	for what, durations := range took {
		report(b, what+"-ms", durations, 0.5)
		report(b, what+"-max-ms", []time.Duration{slices.Max(durations)}, 0)
	}
	check(b, ana.conn.Close())
}

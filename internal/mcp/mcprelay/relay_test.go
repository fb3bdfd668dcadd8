package mcprelay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
)

// list is the result of roots/list in these tests.
const list = `{"roots":[{"uri":"file:///z","name":"z"},{"uri":"file:///a"}]}`

// line generates lines that the relay must not change.
func line() *rapid.Generator[string] {
	word := rapid.SampledFrom([]string{"a", "roots", "roots/list", "ü", `\u0000`, `\ud800`,
		"jsonrpc", `\"`, "inputRequests"})
	value := rapid.Deferred(func() *rapid.Generator[string] { return jsonValue(word, 3) })
	message := rapid.Custom(func(t *rapid.T) string {
		method := rapid.SampledFrom([]string{"tools/call", "tools/list", "ping",
			"notifications/progress", "roots", "initialized", "unknown"})
		id := rapid.SampledFrom([]string{"1", "-7", `"s"`, "1.5", "null", `"acp-agent-relay-"`})
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return fmt.Sprintf(`{"jsonrpc":"2.0", "id":%s,"method":%q,"params":%s}`,
				id.Draw(t, "id"), method.Draw(t, "method"), value.Draw(t, "params"))
		case 1:
			return fmt.Sprintf(`{"method":%q , "params":%s, "jsonrpc":"2.0"}`,
				method.Draw(t, "method"), value.Draw(t, "params"))
		case 2:
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id.Draw(t, "id"),
				value.Draw(t, "result"))
		case 3:
			return fmt.Sprintf(
				`{"id":%s,"error":{"code":-32601,"message":"m","data":%s},"jsonrpc":"2.0"}`,
				id.Draw(t, "id"), value.Draw(t, "data"))
		default:
			return fmt.Sprintf(`[%s]`, value.Draw(t, "batch"))
		}
	})
	junk := rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 30),
		func(b []byte) string { return strings.ReplaceAll(string(b), "\n", " ") })
	long := rapid.Map(rapid.IntRange(60_000, 250_000),
		func(n int) string { return `{"long":"` + strings.Repeat("x", n) + `"}` })
	return rapid.Custom(func(t *rapid.T) string {
		var text string
		switch rapid.IntRange(0, 20).Draw(t, "line") {
		case 0:
			text = long.Draw(t, "long")
		case 1, 2, 3:
			text = junk.Draw(t, "junk")
		case 4:
			text = value.Draw(t, "value")
		default:
			text = message.Draw(t, "message")
		}
		return text + rapid.SampledFrom([]string{"\n", "\n", "\r\n", " \n"}).Draw(t, "end")
	})
}

// jsonValue generates JSON values with some white space and duplicate names.
func jsonValue(word *rapid.Generator[string], depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kinds := 3
		if depth > 0 {
			kinds = 5
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "value") {
		case 0:
			return rapid.SampledFrom([]string{"0", "-1.50e+3", "true", "null",
				"12345678901234567890"}).Draw(t, "literal")
		case 1, 2:
			return `"` + word.Draw(t, "text") + `"`
		case 3:
			items := rapid.SliceOfN(jsonValue(word, depth-1), 0, 3).Draw(t, "items")
			return "[" + strings.Join(items, " , ") + "]"
		default:
			var members []string
			for range rapid.IntRange(0, 3).Draw(t, "members") {
				members = append(members, `"`+word.Draw(t, "name")+`" :`+
					jsonValue(word, depth-1).Draw(t, "member"))
			}
			return "{" + strings.Join(members, ",") + "}"
		}
	})
}

// hidden is a line that does not reach the other side, and the relay's answer, if any.
type hidden struct{ line, answer string }

// script is the messages of one peer.
type script struct {
	sent, seen []byte   // seen is what reaches the other side
	answers    []string // to hidden lines
}

func drawScript(t *rapid.T, who string, hide func(n int) hidden) script {
	var s script
	for n := range rapid.IntRange(0, 30).Draw(t, who) {
		if rapid.IntRange(0, 5).Draw(t, "hidden") == 0 {
			h := hide(n)
			s.sent = append(s.sent, h.line+"\n"...)
			if h.answer != "" {
				s.answers = append(s.answers, h.answer)
			}
			continue
		}
		l := line().Draw(t, "line")
		s.sent = append(s.sent, l...)
		s.seen = append(s.seen, l...)
	}
	return s
}

// Lines that do not concern roots come out as the bytes that went in, in order, both ways at once.
//
// Clause M7.
func TestOtherLinesPassUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		client := drawScript(t, "client", func(int) hidden {
			return hidden{`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, ""}
		})
		server := drawScript(t, "server", func(n int) hidden {
			return hidden{fmt.Sprintf(`{"method":"roots/list","id":"q%d","jsonrpc":"2.0"}`, n),
				fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","result":%s}`, n, list)}
		})
		s := newSides(t)
		done := make(chan struct{})
		var writing, passing sync.WaitGroup
		writing.Go(func() { s.relay.server.writeQueued(done) })
		passing.Go(func() { require.NoError(t, s.relayClient(bytes.NewReader(client.sent))) })
		passing.Go(func() { require.NoError(t, s.relayServer(bytes.NewReader(server.sent))) })
		passing.Wait()
		close(done)
		writing.Wait()
		s.flush()
		require.Equal(t, string(server.seen), s.toClient.String())
		passed, answers := withoutAnswers(s.toServer.String(), server.answers)
		require.Equal(t, string(client.seen), passed)
		require.Equal(t, server.answers, answers, "each request once, in order")
	})
}

// Without a session nothing is changed.
//
// Clause M7.
func TestMessagesPassWithoutSession(t *testing.T) {
	s := newSides(t)
	s.roots = func() json.RawMessage { return nil }
	for _, line := range []string{
		`{"id":1,"method":"initialize","params":{"capabilities":{}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`,
		`{"id":1,"method":"tools/list","params":{"_meta":{"` + capabilitiesKey + `":{}}}}`,
		`{"id":2,"method":"tools/call","params":{"_meta":{"` + capabilitiesKey + `":{}}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`,
	} {
		require.Equal(t, line, s.client(line))
	}
	for _, line := range []string{`{"method":"roots/list","id":"q","jsonrpc":"2.0"}`,
		asks("2", "", forRoots)} {
		require.Empty(t, s.server(line))
		require.Equal(t, line, s.got())
	}
}

// If the session ends while a call is repeated, the client gets the answer under its own id.
//
// Clause M7.
func TestSessionEndsDuringCall(t *testing.T) {
	s := newSides(t)
	s.client(modernCall("1", ""))
	id := idOf(t, s.server(asks("1", "", forRoots)))
	s.roots = func() json.RawMessage { return nil }
	require.Empty(t, s.server(asks(id, "", forRoots)))
	require.JSONEq(t, asks("1", "", forRoots), s.got())
}

// withoutAnswers separates the relay's answers from the rest of what the server received.
func withoutAnswers(sent string, answers []string) (passed string, found []string) {
	var rest strings.Builder
	for l := range strings.Lines(sent) {
		if answer := strings.TrimSuffix(l, "\n"); slices.Contains(answers, answer) {
			found = append(found, answer)
			continue
		}
		rest.WriteString(l)
	}
	return rest.String(), found
}

// sides is a relay that writes to buffers.
type sides struct {
	*relay
	t                  require.TestingT
	toClient, toServer *bytes.Buffer
}

func newSides(t require.TestingT) sides {
	s := sides{t: t, toClient: &bytes.Buffer{}, toServer: &bytes.Buffer{}}
	s.relay = newRelay(Options{}.withDefaults(),
		func() json.RawMessage { return json.RawMessage(list) }, s.toClient, s.toServer)
	return s
}

// flush writes the queued messages.
func (s sides) flush() {
	for len(s.relay.server.own) > 0 {
		_ = s.relay.server.writeOwn(<-s.relay.server.own)
	}
}

// client sends a line as the client and returns what the server receives.
func (s sides) client(line string) string {
	require.NoError(s.t, s.relayClient(strings.NewReader(line+"\n")))
	return s.server("")
}

// server sends a line as the server, unless it is "", and returns what the server receives.
func (s sides) server(line string) string {
	if line != "" {
		require.NoError(s.t, s.relayServer(strings.NewReader(line+"\n")))
	}
	s.flush()
	return take(s.toServer)
}

// got returns what the client has received since the last call.
func (s sides) got() string { return take(s.toClient) }

func take(b *bytes.Buffer) string {
	defer b.Reset()
	return strings.TrimSuffix(b.String(), "\n")
}

// Clause M7.
func TestDeclareRoots(t *testing.T) {
	const (
		initialize = `{"id":1,"method":"initialize","params":{"capabilities":`
		list       = `{"id":1,"method":"tools/list","params":{"_meta":{"` + capabilitiesKey + `":`
	)
	for sent, want := range map[string]string{
		`{"id":1,"method":"initialize" ,"params":{ "capabilities":{},"x":1.50}}`: `{"id":1,` +
			`"method":"initialize" ,"params":{ "capabilities":{"roots":{"listChanged":true}},` +
			`"x":1.50}}`,
		initialize + `{"sampling":{}}}}`: initialize +
			`{"roots":{"listChanged":true},"sampling":{}}}}`,
		initialize + `{"a":0,"roots":{"listChanged":false},"sampling":{}}}}`: initialize +
			`{"a":0,"roots":{"listChanged":true},"sampling":{}}}}`,
		list + `{}}}}`: list + `{"roots":{}}}}}`,
		`{"jsonrpc":"2.0","method":"notifications\/roots\/list_changed"}`: "",
	} {
		require.Equal(t, want, newSides(t).client(sent), sent)
	}
	for _, unchanged := range []string{
		initialize + `{"roots":{ "listChanged" : true }}}}`,
		initialize + `null}}`,
		`{"id":1,"method":"initialize"}`,
		`{"method":"initialize","params":{"capabilities":{}}}`,
		list + `{"roots":{}}}}}`,
		list + `[]}}}`,
		`{"id":1,"method":"tools/list",` +
			`"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"id":1,"method":"notifications/roots/list_changed","params":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"q","result":{"inputRequests":{"k":{"method":"roots/list"}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":5}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call",` +
			`"params":{"name":"roots","arguments":{"method":"roots/list"}}}`,
		`[{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}]`,
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"`,
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed",` +
			`"method":"notifications/other", "capabilities":{}}`,
	} {
		require.Equal(t, unchanged, newSides(t).client(unchanged))
	}
}

// Clause M3.
func TestAnnounceChange(t *testing.T) {
	const changed = `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`
	const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	s := newSides(t)
	s.rootsChanged()
	s.client(`{"id":1,"method":"initialize","params":{"capabilities":{}}}`)
	require.Equal(t, initialized, s.client(initialized), "the server has not asked before")
	s.rootsChanged()
	require.Equal(t, changed, s.server(""))

	s = newSides(t)
	s.client(`{"id":1,"method":"initialize","params":{"capabilities":{}}}`)
	s.rootsChanged()
	s.rootsChanged()
	require.Empty(t, s.server(""))
	require.Equal(t, initialized+"\n"+changed, s.client(initialized))

	s = newSides(t)
	s.client(modernCall(`1`, ""))
	s.rootsChanged()
	require.Empty(t, s.server(""), "a modern server asks in each call")
}

// Clause M9.
func TestPeersThatWriteWithoutReading(t *testing.T) {
	clientOut, clientIn := io.Pipe()
	serverOut, serverIn := io.Pipe()
	r := newRelay(Options{}.withDefaults(), func() json.RawMessage { return json.RawMessage(list) },
		clientIn, serverIn)
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { r.server.writeQueued(done) })
	running.Go(func() { _ = r.relayClient(strings.NewReader(strings.Repeat("client\n", 100))) })
	running.Go(func() {
		_ = r.relayServer(strings.NewReader(
			strings.Repeat(`{"method":"roots/list","id":1}`+"\n", 500) + "server\n"))
	})
	buffer := make([]byte, 7)
	_, err := io.ReadFull(clientOut, buffer)
	require.NoError(t, err)
	require.Equal(t, "server\n", string(buffer),
		"the client gets it while the server reads nothing")
	all := make([]byte, 100*len("client\n")+500*len(`{"jsonrpc":"2.0","id":1,"result":`+list+"}\n"))
	_, err = io.ReadFull(serverOut, all)
	require.NoError(t, err)
	close(done)
	running.Wait()
}

// A line that is too long is answered: a request to who sent it, and an answer to who waits for it.
//
// Clause M7.
func TestLongLinesAreAnswered(t *testing.T) {
	s := newSides(t)
	s.MaxMessage = 1000
	long := `{"x":"` + strings.Repeat("x", 100_000) + `"}`
	refused := func(id, received string) {
		t.Helper()
		require.Equal(t, id, idOf(t, received))
		require.Contains(t, received, `"error"`)
		require.Contains(t, received, "--max-line")
	}
	client := func(line string) string {
		t.Helper()
		require.Empty(t, s.client(line))
		for len(s.relay.client.own) > 0 {
			require.NoError(t, s.relay.client.writeOwn(<-s.relay.client.own))
		}
		return s.got()
	}
	refused("7", client(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":`+long+`}`))
	require.Empty(t, client(`{"jsonrpc":"2.0","method":"notifications/progress","params":`+long+`}`))
	refused(`"q"`, s.server(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":`+long+`}`))
	require.Empty(t, s.server(`{"jsonrpc":"2.0","id":8,"result":`+long+`}`))
	refused("8", client(""))

	s.client(modernCall("9", ""))
	id := idOf(t, s.server(asks("9", "", forRoots)))
	require.Empty(t, s.server(`{"jsonrpc":"2.0","id":`+id+`,"result":`+long+`}`))
	refused("9", client(""))
	require.Equal(t, "{}", s.client("{}"), "what comes behind passes")
}

// modernCall returns a tool call. more holds members of its params, each followed by a comma.
func modernCall(id, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{%s"name":"t",`+
		`"_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}`, id, more)
}

// asks returns a result that requests input.
func asks(id, state, questions string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required"%s,`+
		`"inputRequests":{%s}}}`, id, state, questions)
}

const (
	forRoots   = `"w":{"method":"roots/list"}`
	forConsent = `"c":{"method":"elicitation/create","params":{}}`
)

func idOf(t testing.TB, message string) string {
	t.Helper()
	var m struct{ ID json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(message), &m), message)
	return string(m.ID)
}

// Clause M7.
func TestRepeatedCall(t *testing.T) {
	s := newSides(t)
	require.Equal(t, modernCall("7", ""), s.client(modernCall("7", "")))
	again := s.server(asks("7", `,"requestState":"s\u00e9"`, forRoots))
	require.Empty(t, s.got())
	id := idOf(t, again)
	require.Regexp(t, `^"acp-agent-relay-[0-9a-f]{32}-1"$`, id)
	require.JSONEq(t, strings.TrimSuffix(modernCall(id,
		`"requestState":"sé","inputResponses":{"w":`+list+`},`), ""), again)
	require.Contains(t, again, `"s\u00e9"`, "the state is the server's own bytes")

	third := s.server(asks(id, "", forRoots)) // it asks again, without a state
	require.NotContains(t, third, "requestState")
	require.Empty(t, s.server(`{"jsonrpc":"2.0","id":`+idOf(t, third)+`,"result":{"n":1.0}}`))
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"result":{"n":1.0}}`, s.got())
	require.Empty(t, s.calls)
}

// Clause M7.
func TestRepeatedCallFails(t *testing.T) {
	s := newSides(t)
	s.client(modernCall(`"x"`, ""))
	id := idOf(t, s.server(asks(`"x"`, "", forRoots)))
	s.server(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":5,"message":"m"}}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":"x","error":{"code":5,"message":"m"}}`, s.got())
}

// Clause M7.
func TestRequestsForTheClient(t *testing.T) {
	s := newSides(t)
	s.client(modernCall("1", ""))
	require.Empty(t, s.server(asks("1", "", forConsent)))
	require.Equal(t, asks("1", "", forConsent), s.got())

	for _, state := range []string{"", `,"requestState":"st"`} {
		s.client(modernCall("2", ""))
		s.server(asks("2", state, forRoots+","+forConsent))
		question := s.got()
		require.NotContains(t, question, "roots/list")
		var m struct{ Result struct{ RequestState string } }
		require.NoError(t, json.Unmarshal([]byte(question), &m))
		answered := s.client(modernCall("3",
			fmt.Sprintf(`"requestState":%q,"inputResponses":{"c":{"action":"accept"}},`,
				m.Result.RequestState)))
		require.JSONEq(t, modernCall("3", strings.TrimPrefix(state+
			`,"inputResponses":{"c":{"action":"accept"},"w":`+list+`},`, ",")), answered)
		s.server(`{"jsonrpc":"2.0","id":3,"result":{}}`)
		require.Equal(t, `{"jsonrpc":"2.0","id":3,"result":{}}`, s.got())
	}
	foreign := modernCall("4", `"requestState":"00112233445566778899aabbccddeeffe30",`)
	require.Equal(t, foreign, s.client(foreign), "a state that is not the relay's")
}

// Clause M7.
func TestCancelRepeatedCall(t *testing.T) {
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,` +
		`"reason":"r"}}`
	s := newSides(t)
	s.client(modernCall("1", ""))
	id := idOf(t, s.server(asks("1", "", forRoots)))
	require.Equal(t, fmt.Sprintf(cancel, id), s.client(fmt.Sprintf(cancel, "1")))
	s.server(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
	require.Empty(t, s.got(), "the client no longer waits for it")

	s.client(modernCall(`"two"`, ""))
	spelled := fmt.Sprintf(cancel, `"\u0074wo"`)
	require.Equal(t, spelled, s.client(spelled), "the call was not repeated")
	require.Empty(t, s.calls)
}

func TestTooManyCalls(t *testing.T) {
	s := newSides(t)
	last := fmt.Sprint(maxCalls)
	for id := range maxCalls + 1 {
		require.NotEmpty(t, s.client(modernCall(fmt.Sprint(id), "")))
	}
	s.server(asks(last, "", forRoots))
	require.Equal(t, asks(last, "", forRoots), s.got(), "it was not kept")
	s.server(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	s.server(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	s.client(modernCall("-1", ""))
	s.client(modernCall("-1", ""))
	require.Len(t, s.calls, maxCalls-1, "an id that is used twice is kept once")
}

// Clause M7.
func TestTooManyRounds(t *testing.T) {
	s := newSides(t)
	s.client(modernCall("1", ""))
	id := "1"
	for range mcproots.MaxRounds - 1 {
		id = idOf(t, s.server(asks(id, "", forRoots)))
	}
	require.Empty(t, s.server(asks(id, "", forRoots)))
	require.JSONEq(t, asks("1", "", forRoots), s.got(), "the client decides")
	require.Empty(t, s.calls)
}

func TestServerDoesNotRead(t *testing.T) {
	s := newSides(t)
	require.NoError(t, s.relayServer(strings.NewReader(
		strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`+"\n", 5000))))
	s.flush()
	require.Equal(t, maxQueued, strings.Count(s.toServer.String(), "\n"))

	s = newSides(t)
	large := `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 1<<20) + `","method":"roots/list"}` +
		"\n"
	require.NoError(t, s.relayServer(strings.NewReader(strings.Repeat(large, 12))))
	s.flush()
	require.InDelta(t, maxQueuedBytes, s.toServer.Len(), 2<<20, "by their size, too")
	require.Zero(t, s.relay.server.ownBytes.Load(), "there is room again")
}

// The deadline for the secret does not end a relay.
func TestRelaysStayConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Publisher{timeout: time.Second, check: time.Minute, secret: "secret",
			ctx: t.Context(), changed: make(chan struct{})}
		p.Set(mcproots.Snapshot{})
		relay, conn := net.Pipe()
		go p.serve(conn)
		_, err := relay.Write([]byte("secret\n"))
		require.NoError(t, err)
		_, err = io.ReadFull(relay, make([]byte, len(`{"roots":[]}`+"\n")))
		require.NoError(t, err)
		require.NoError(t, relay.SetReadDeadline(time.Now().Add(time.Hour)))
		_, err = relay.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, relay.Close())
	})
}

func TestTooManyRequestsInOneResult(t *testing.T) {
	s := newSides(t)
	s.client(modernCall("1", ""))
	var all []string
	for i := range 20_000 {
		all = append(all, fmt.Sprintf(`"%d":{"method":"roots/list"}`, i))
	}
	result := asks("1", "", strings.Join(all, ","))
	require.Empty(t, s.server(result))
	require.Equal(t, result, s.got())
	require.Empty(t, s.calls)
}

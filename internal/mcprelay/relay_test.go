package mcprelay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/internal/mcprelay"
)

// list is what the relays of these tests are told.
const list = `{"roots":[{"uri":"file:///z","name":"z"},{"uri":"file:///a"}]}`

// maxMessage is small, so that lines over it are many.
const maxMessage = 100_000

// line is a line that a peer may send and that the relay has nothing to do with.
func line() *rapid.Generator[string] {
	word := rapid.SampledFrom([]string{"a", "roots", "roots/list", "ü", `\u0000`, `\ud800`, "jsonrpc", `\"`, "inputRequests"})
	value := rapid.Deferred(func() *rapid.Generator[string] { return jsonValue(word, 3) })
	message := rapid.Custom(func(t *rapid.T) string {
		method := rapid.SampledFrom([]string{"tools/call", "tools/list", "ping", "notifications/progress", "roots", "initialized", "unknown"})
		id := rapid.SampledFrom([]string{"1", "-7", `"s"`, "1.5", "null", `"acp-agent-relay-"`})
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return fmt.Sprintf(`{"jsonrpc":"2.0", "id":%s,"method":%q,"params":%s}`, id.Draw(t, "id"), method.Draw(t, "method"), value.Draw(t, "params"))
		case 1:
			return fmt.Sprintf(`{"method":%q , "params":%s, "jsonrpc":"2.0"}`, method.Draw(t, "method"), value.Draw(t, "params"))
		case 2:
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id.Draw(t, "id"), value.Draw(t, "result"))
		case 3:
			return fmt.Sprintf(`{"id":%s,"error":{"code":-32601,"message":"m","data":%s},"jsonrpc":"2.0"}`, id.Draw(t, "id"), value.Draw(t, "data"))
		default:
			return fmt.Sprintf(`[%s]`, value.Draw(t, "batch"))
		}
	})
	junk := rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 30), func(b []byte) string { return strings.ReplaceAll(string(b), "\n", " ") })
	long := rapid.Map(rapid.IntRange(60_000, 250_000), func(n int) string { return `{"long":"` + strings.Repeat("x", n) + `"}` })
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

// jsonValue is a JSON value with some whitespace in it, and the same name more than once.
func jsonValue(word *rapid.Generator[string], depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kinds := 3
		if depth > 0 {
			kinds = 5
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "value") {
		case 0:
			return rapid.SampledFrom([]string{"0", "-1.50e+3", "true", "null", "12345678901234567890"}).Draw(t, "literal")
		case 1, 2:
			return `"` + word.Draw(t, "text") + `"`
		case 3:
			items := rapid.SliceOfN(jsonValue(word, depth-1), 0, 3).Draw(t, "items")
			return "[" + strings.Join(items, " , ") + "]"
		default:
			var members []string
			for range rapid.IntRange(0, 3).Draw(t, "members") {
				members = append(members, `"`+word.Draw(t, "name")+`" :`+jsonValue(word, depth-1).Draw(t, "member"))
			}
			return "{" + strings.Join(members, ",") + "}"
		}
	})
}

// hidden is a line that does not reach the other side, and its answer, "" if there is none.
type hidden struct{ line, answer string }

// script is what one peer sends.
type script struct {
	sent, seen []byte   // by the other side
	answers    []string // to what was hidden
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

// What is not for the relay comes out as the bytes that went in, in their order, both ways at once, whatever is answered
// in between.
func TestM7_EverythingElsePassesAsItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		client := drawScript(t, "client", func(int) hidden {
			return hidden{`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, ""}
		})
		server := drawScript(t, "server", func(n int) hidden {
			return hidden{fmt.Sprintf(`{"method":"roots/list","id":"q%d","jsonrpc":"2.0"}`, n),
				fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","result":%s}`, n, list)}
		})
		var toClient, toServer bytes.Buffer
		p := mcprelay.NewPumps(mcprelay.Options{MaxMessage: maxMessage}, list, &toClient, &toServer)
		done := make(chan struct{})
		var writing, passing sync.WaitGroup
		writing.Go(func() { p.Write(done) })
		passing.Go(func() { require.NoError(t, p.FromClient(bytes.NewReader(client.sent))) })
		passing.Go(func() { require.NoError(t, p.FromServer(bytes.NewReader(server.sent))) })
		passing.Wait()
		close(done)
		writing.Wait()
		p.Flush()
		require.Equal(t, string(server.seen), toClient.String())
		passed, answers := withoutAnswers(toServer.String(), server.answers)
		require.Equal(t, string(client.seen), passed)
		require.Equal(t, server.answers, answers, "each question once, in their order")
	})
}

// withoutAnswers takes the relay's answers from what the server was sent.
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

// sides are a relay whose output is at hand.
type sides struct {
	mcprelay.Pumps
	t                  testing.TB
	toClient, toServer *bytes.Buffer
}

func newSides(t testing.TB, o mcprelay.Options) sides {
	s := sides{t: t, toClient: &bytes.Buffer{}, toServer: &bytes.Buffer{}}
	s.Pumps = mcprelay.NewPumps(o, list, s.toClient, s.toServer)
	return s
}

// client has the client send a line, and returns what the server got.
func (s sides) client(line string) string {
	s.t.Helper()
	require.NoError(s.t, s.FromClient(strings.NewReader(line+"\n")))
	return s.server("")
}

// server has the server send a line, unless it is "", and returns what it gets.
func (s sides) server(line string) string {
	s.t.Helper()
	if line != "" {
		require.NoError(s.t, s.FromServer(strings.NewReader(line+"\n")))
	}
	s.Flush()
	return take(s.toServer)
}

// got is what the client has got since.
func (s sides) got() string { return take(s.toClient) }

func take(b *bytes.Buffer) string {
	defer b.Reset()
	return strings.TrimSuffix(b.String(), "\n")
}

func TestM7_InitializeDeclaresRootsAndKeepsItsOtherBytes(t *testing.T) {
	for sent, want := range map[string]string{
		`{"id":1,"method":"initialize" ,"params":{ "capabilities":{},"x":1.50}}`:                                       `{"id":1,"method":"initialize" ,"params":{ "capabilities":{"roots":{"listChanged":true}},"x":1.50}}`,
		`{"id":1,"method":"initialize","params":{"capabilities":{"sampling":{}}}}`:                                     `{"id":1,"method":"initialize","params":{"capabilities":{"roots":{"listChanged":true},"sampling":{}}}}`,
		`{"id":1,"method":"initialize","params":{"capabilities":{"a":0,"roots":{"listChanged":false},"sampling":{}}}}`: `{"id":1,"method":"initialize","params":{"capabilities":{"a":0,"roots":{"listChanged":true},"sampling":{}}}}`,
		`{"id":1,"method":"initialize","params":{"capabilities":{"roots":{ "listChanged" : true }}}}`:                  "",
		`{"id":1,"method":"initialize","params":{"capabilities":null}}`:                                                "",
		`{"id":1,"method":"initialize"}`:                                                                                  "",
		`{"method":"initialize","params":{"capabilities":{}}}`:                                                            "",
		`{"id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}}`:             `{"id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}`,
		`{"id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}`:   "",
		`{"id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":[]}}}`:             "",
		`{"id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`:      "",
		`{"id":1,"method":"notifications/roots/list_changed","params":{}}`:                                                "",
		`{"jsonrpc":"2.0","method":"notifications\/roots\/list_changed"}`:                                                 "-",
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`:                                   "",
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`:                                                          "",
		`{"jsonrpc":"2.0","id":"q","result":{"inputRequests":{"k":{"method":"roots/list"}}}}`:                             "",
		`{"jsonrpc":"2.0","id":1,"method":5}`:                                                                             "",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"roots","arguments":{"method":"roots/list"}}}`:    "",
		`[{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}]`:                                                 "",
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"`:                                                    "",
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed","method":"notifications/other", "capabilities":{}}`: "",
	} {
		if want == "" {
			want = sent
		} else if want == "-" {
			want = ""
		}
		require.Equal(t, want, newSides(t, mcprelay.Options{}).client(sent), sent)
	}
}

func TestM3_AChangeIsToldOnceTheServerCanHear(t *testing.T) {
	const changed = `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`
	const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	s := newSides(t, mcprelay.Options{})
	s.Changed()
	s.client(`{"id":1,"method":"initialize","params":{"capabilities":{}}}`)
	require.Equal(t, initialized, s.client(initialized), "it has not asked before")
	s.Changed()
	require.Equal(t, changed, s.server(""))

	s = newSides(t, mcprelay.Options{})
	s.client(`{"id":1,"method":"initialize","params":{"capabilities":{}}}`)
	s.Changed()
	s.Changed()
	require.Empty(t, s.server(""))
	require.Equal(t, initialized+"\n"+changed, s.client(initialized))

	s = newSides(t, mcprelay.Options{})
	s.client(modernCall(`1`, ""))
	s.Changed()
	require.Empty(t, s.server(""), "a modern server asks in each call")
}

func TestM9_PeersThatWriteAndDoNotReadDoNotStopTheRelay(t *testing.T) {
	clientOut, clientIn := io.Pipe()
	serverOut, serverIn := io.Pipe()
	p := mcprelay.NewPumps(mcprelay.Options{}, list, clientIn, serverIn)
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { p.Write(done) })
	// The client writes before it reads, the server asks for the roots again and again before it reads.
	running.Go(func() { _ = p.FromClient(strings.NewReader(strings.Repeat("client\n", 100))) })
	running.Go(func() {
		_ = p.FromServer(strings.NewReader(strings.Repeat(`{"method":"roots/list","id":1}`+"\n", 500) + "server\n"))
	})
	buffer := make([]byte, 7)
	_, err := io.ReadFull(clientOut, buffer)
	require.NoError(t, err)
	require.Equal(t, "server\n", string(buffer), "the client gets it while the server reads nothing")
	all := make([]byte, 100*len("client\n")+500*len(`{"jsonrpc":"2.0","id":1,"result":`+list+"}\n"))
	_, err = io.ReadFull(serverOut, all)
	require.NoError(t, err)
	close(done)
	running.Wait()
}

// modernCall is a call of a tool; more are members of its params, with a comma behind.
func modernCall(id, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{%s"name":"t","_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}`, id, more)
}

// asks is a result that asks for input.
func asks(id, state, questions string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required"%s,"inputRequests":{%s}}}`, id, state, questions)
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

func TestM7_AQuestionInAResultIsAnsweredByARepeatedCall(t *testing.T) {
	s := newSides(t, mcprelay.Options{})
	require.Equal(t, modernCall("7", ""), s.client(modernCall("7", "")))
	again := s.server(asks("7", `,"requestState":"s\u00e9"`, forRoots))
	require.Empty(t, s.got())
	id := idOf(t, again)
	require.Regexp(t, `^"acp-agent-relay-[0-9a-f]{32}-1"$`, id)
	require.JSONEq(t, strings.TrimSuffix(modernCall(id, `"requestState":"sé","inputResponses":{"w":`+list+`},`), ""), again)
	require.Contains(t, again, `"s\u00e9"`, "the state is the server's own bytes")

	third := s.server(asks(id, "", forRoots)) // it asks again, without a state
	require.NotContains(t, third, "requestState")
	require.Empty(t, s.server(`{"jsonrpc":"2.0","id":`+idOf(t, third)+`,"result":{"n":1.0}}`))
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"result":{"n":1.0}}`, s.got())
	calls, bytes := s.Held()
	require.Zero(t, calls+bytes)
}

func TestM7_AnErrorOfTheRepeatedCallIsTheCalls(t *testing.T) {
	s := newSides(t, mcprelay.Options{})
	s.client(modernCall(`"x"`, ""))
	id := idOf(t, s.server(asks(`"x"`, "", forRoots)))
	s.server(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":5,"message":"m"}}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":"x","error":{"code":5,"message":"m"}}`, s.got())
}

func TestM7_QuestionsForTheClientAreLeftToIt(t *testing.T) {
	s := newSides(t, mcprelay.Options{})
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
		answered := s.client(modernCall("3", fmt.Sprintf(`"requestState":%q,"inputResponses":{"c":{"action":"accept"}},`, m.Result.RequestState)))
		require.JSONEq(t, modernCall("3", strings.TrimPrefix(state+`,"inputResponses":{"c":{"action":"accept"},"w":`+list+`},`, ",")), answered)
		s.server(`{"jsonrpc":"2.0","id":3,"result":{}}`)
		require.Equal(t, `{"jsonrpc":"2.0","id":3,"result":{}}`, s.got())
	}
	foreign := modernCall("4", `"requestState":"00112233445566778899aabbccddeeffe30",`)
	require.Equal(t, foreign, s.client(foreign), "a state that is not the relay's")
}

func TestM7_CancellingFindsTheRepeatedCall(t *testing.T) {
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"r"}}`
	s := newSides(t, mcprelay.Options{})
	s.client(modernCall("1", ""))
	id := idOf(t, s.server(asks("1", "", forRoots)))
	require.Equal(t, fmt.Sprintf(cancel, id), s.client(fmt.Sprintf(cancel, "1")))
	s.server(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
	require.Empty(t, s.got(), "nobody waits for it")

	s.client(modernCall(`"two"`, ""))
	spelled := fmt.Sprintf(cancel, `"\u0074wo"`)
	require.Equal(t, spelled, s.client(spelled), "the id is the client's own")
	calls, _ := s.Held()
	require.Zero(t, calls)
}

func TestWhatIsHeldIsBounded(t *testing.T) {
	s := newSides(t, mcprelay.Options{MaxHeld: 3 * len(modernCall("1", ""))})
	s.client(modernCall("1", ""))
	s.client(modernCall("2", ""))
	require.Empty(t, s.client(modernCall("3", "")))
	require.Contains(t, s.got(), `"id":3,"error":{"code":-32603,"message":"calls that are not answered hold`)
	s.server(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	require.Equal(t, modernCall("4", ""), s.client(modernCall("4", "")))
	s.client(modernCall("4", ""))
	calls, _ := s.Held()
	require.Equal(t, 2, calls, "an id that is used twice is held once")
}

func TestM7_AServerThatNeverHasEnoughIsGivenUp(t *testing.T) {
	s := newSides(t, mcprelay.Options{MaxRounds: 3})
	s.client(modernCall("1", ""))
	id := "1"
	for range 2 {
		id = idOf(t, s.server(asks(id, "", forRoots)))
	}
	require.Empty(t, s.server(asks(id, "", forRoots)))
	require.Contains(t, s.got(), `"id":1,"error":{"code":-32603,"message":"the server asked for the roots 3 times and gave no result"}`)
	calls, _ := s.Held()
	require.Zero(t, calls)
}

// questions are so many of a server for the roots, each with an id of so many bytes.
func questions(n, size int) io.Reader {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, `{"jsonrpc":"2.0","id":"%d%s","method":"roots/list"}`+"\n", i, strings.Repeat("x", size))
	}
	return strings.NewReader(all.String())
}

func TestHostileAServerThatAsksAndDoesNotRead(t *testing.T) {
	var log, server bytes.Buffer
	p := mcprelay.NewPumps(mcprelay.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), MaxMessage: 10_000, MaxOwn: 100_000},
		`{"roots":[]}`, io.Discard, &server)
	require.NoError(t, p.FromServer(questions(5000, 1)))
	require.Equal(t, 1, strings.Count(log.String(), "\n"), "it is said once")
	p.Flush()
	require.LessOrEqual(t, strings.Count(server.String(), "\n"), 1024)

	server.Reset()
	require.NoError(t, p.FromServer(questions(500, 5000)))
	p.Flush()
	require.Greater(t, server.Len(), 90_000)
	require.Less(t, server.Len(), 110_000, "the bytes that wait are bounded too")
	require.NoError(t, p.FromServer(questions(1, 1)))
	server.Reset()
	p.Flush()
	require.Equal(t, 1, strings.Count(server.String(), "\n"), "there is room again")
}

func TestHostileAResultThatAsksVeryOften(t *testing.T) {
	var client, server bytes.Buffer
	p := mcprelay.NewPumps(mcprelay.Options{}, `{"roots":[]}`, &client, &server)
	require.NoError(t, p.FromClient(strings.NewReader(modernCall("1", "")+"\n")))
	server.Reset()
	var all []string
	for i := range 20_000 {
		all = append(all, fmt.Sprintf(`"%d":{"method":"roots/list"}`, i))
	}
	done := make(chan error, 1)
	go func() { done <- p.FromServer(strings.NewReader(asks("1", "", strings.Join(all, ",")) + "\n")) }()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(patience):
		t.Fatal("still at work")
	}
	p.Flush()
	require.Empty(t, server.String())
	require.Contains(t, client.String(), `"id":1,"error"`)
	require.Contains(t, client.String(), "asked 20000 questions in one result, and 100 are the limit")
	calls, _ := p.Held()
	require.Zero(t, calls)
}

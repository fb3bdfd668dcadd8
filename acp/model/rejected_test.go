package model

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// poison is what the servers of these tests do not accept, and escaped what the scripted model
// says so that only its answer has it.
const poison, escaped = "POISON", `\u0050OISON`

// poisoned is an image that the servers of these tests do not accept.
var poisoned = base64.StdEncoding.EncodeToString(onePixel)

// rejection is how a server rejects a request.
type rejection struct {
	status int
	body   string
}

// rejecting puts a server in front of the model that rejects requests with the poison, and counts
// them.
func rejecting(t *testing.T, r rejection, count *atomic.Int64) func(*Model) {
	return func(m *Model) {
		to, err := url.Parse(m.BaseURL)
		require.NoError(t, err)
		proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
		handle := func(w http.ResponseWriter, asked *http.Request) {
			body, _ := io.ReadAll(asked.Body)
			if bytes.Contains(body, []byte(poison)) || bytes.Contains(body, []byte(poisoned)) {
				count.Add(1)
				w.Header().Set("Retry-After-Ms", "1")
				w.WriteHeader(r.status)
				_, _ = io.WriteString(w, r.body)
				return
			}
			asked.Body = io.NopCloser(bytes.NewReader(body))
			proxy.ServeHTTP(w, asked)
		}
		server := httptest.NewServer(http.HandlerFunc(handle))
		t.Cleanup(server.Close)
		m.BaseURL = server.URL
	}
}

// rejections returns the errors of servers, by name, that are of a kind, or of any kind for "", and
// can mean that a server does not accept a part of the conversation.
func rejections(t *testing.T, kind llm.Kind) map[string]rejection {
	t.Helper()
	all := map[string]rejection{}
	file := filepath.Join("..", "..", "internal", "llm", "testdata", "errors.txt")
	for _, lines := range records(t, file) {
		code, body, _ := strings.Cut(lines[1], " ")
		status, err := strconv.Atoi(code)
		require.NoError(t, err)
		is := llm.Kind(strings.Split(lines[2], ":")[0])
		passes := is == llm.Overloaded && status != http.StatusInternalServerError &&
			status != http.StatusConflict
		if is == cmp.Or(kind, is) && !passes && status != http.StatusPaymentRequired &&
			(is != llm.KeyRejected || status == http.StatusForbidden) {
			all[lines[0]] = rejection{status, strings.ReplaceAll(body, "␤", "\n")}
		}
	}
	require.NotEmpty(t, all)
	return all
}

// places are where the poison gets into the conversation.
var places = map[string]func(e *editor){
	"prompt": func(e *editor) { e.prompt("Say " + poison) },
	"image": func(e *editor) {
		e.send(sdk.TextBlock("Look."), sdk.ImageBlock(poisoned, "image/png"))
	},
	"result": func(e *editor) { e.prompt("Read.", modelserver.Read("poison.txt")) },
	"result beside others": func(e *editor) {
		e.prompt("Read.", modelserver.Together(modelserver.Read("a.txt"),
			modelserver.Read("poison.txt")))
	},
	"image of a tool": func(e *editor) { e.prompt("Look.", modelserver.UseWith("fs__picture", "{}")) },
	"answer": func(e *editor) {
		e.send(sdk.TextBlock("Say.\nmodel: {\"do\":\"say\",\"text\":\"" + escaped + "\"}"))
	},
	"call": func(e *editor) {
		e.send(sdk.TextBlock("Read.\nmodel: {\"do\":\"read\",\"path\":\"" + escaped + "\"}"))
	},
	"cancelled prompt": func(e *editor) {
		e.cancelAfter(func(u update) bool { return u.Status == sdk.ToolCallStatusCompleted })
		e.prompt("Read.", modelserver.Read("poison.txt"), modelserver.Wait())
		e.watch(nil)
	},
}

// recovers checks that the model answers one of a few prompts, and from then on each of them, also
// after a restart and in a fork. If an answer of the model is the reason, the user is told to undo
// it. The history keeps what the model is not told.
func (e *editor) recovers(within int, poisonedAnswer bool, count *atomic.Int64) {
	e.t.Helper()
	said := ""
	for i := 0; !strings.Contains(said, "Going on."); i++ {
		require.Less(e.t, i, within, said)
		if poisonedAnswer && i == within-1 {
			require.Contains(e.t, said, "/undo")
			require.Contains(e.t, e.prompt("/undo").text(), "The model has forgotten `Say.")
		}
		said = e.prompt("Go on.", modelserver.Say("Going on.")).text()
		if i == 0 {
			e.restart()
		}
	}
	before := count.Load()
	e.goOn()
	e.restart()
	e.goOn()
	fork, err := e.client.ForkSession(e.t.Context(), e.id, e.lifecycle())
	require.NoError(e.t, err)
	e.id = fork.ID
	e.goOn()
	require.Equal(e.t, "Replaced.", e.summary())
	require.Equal(e.t, before, count.Load(), "requests that were rejected later")
}

// summary lets the model summarise the conversation.
func (e *editor) summary() string {
	e.t.Helper()
	e.prompt("Remember.", modelserver.Say("Replaced.").Aside())
	r := e.prompt("/compact")
	require.Contains(e.t, r.text(), "continues with a summary")
	e.prompt("And?")
	if strings.Contains(e.last().Text(), "Replaced.") {
		return "Replaced."
	}
	return e.last().Text()
}

// stored returns the stored history.
func (e *editor) stored() string {
	e.t.Helper()
	var all strings.Builder
	for u, err := range e.setup.store.History(e.t.Context(), sessionstore.ID(e.id)) {
		require.NoError(e.t, err)
		all.Write(u.Raw)
	}
	return all.String()
}

// A request that the server rejects for its content leaves a session in which a later prompt is
// accepted, wherever the content is and whatever the words.
//
// Clause B6.
func TestNoStuckSession(t *testing.T) {
	ways := slices.Sorted(maps.Keys(places))
	next := 0
	all := rejections(t, "")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for range volume.Of(1, len(ways)) {
			place := ways[next%len(ways)]
			next++
			t.Run(name+", "+place, func(t *testing.T) {
				t.Parallel()
				var count atomic.Int64
				dir := dirtest.New(t, "poison.txt", poison+"\n", "a.txt", "one\n")
				s := setup{roots: []string{dir}, model: rejecting(t, all[name], &count)}
				if place == "image of a tool" {
					s.servers = []sdk.McpServer{playedServer("fs")}
				}
				e := open(t, s)
				e.answer(allowOnce)
				e.prompt("First.", modelserver.Say("Done."))
				places[place](e)
				e.recovers(3, place == "answer", &count)
				require.Contains(t, e.stored(), "Done.")
			})
		}
	}
}

// What a content filter rejects is not sent again, and the user reads what was left out.
//
// Clause B6.
func TestContentFilters(t *testing.T) {
	for name, r := range rejections(t, llm.Filtered) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var count atomic.Int64
			e := open(t, setup{model: rejecting(t, r, &count)})
			e.prompt("First.", modelserver.Say("Done."))
			said := e.prompt("Say " + poison)
			require.JSONEq(t, failedResult, string(said.result))
			require.Regexp(t, `^The content filter of the model's server rejected the request: .*`+
				`Later requests leave out your message\. It remains in the history of the `+
				`session\. Send another one to continue, or choose another model\.$`, said.text())
			require.NotContains(t, said.text(), "configuration")
			require.EqualValues(t, 1, count.Load())
			require.Contains(t, e.stored(), poison)
			e.goOn()
			require.Contains(t, e.last().Text(), "First.")
			require.EqualValues(t, 1, count.Load())
		})
	}
}

// Images that the server does not accept are left out at once, and the model answers.
//
// Clause B6.
func TestRejectedMedia(t *testing.T) {
	for _, place := range []string{"image", "image of a tool"} {
		t.Run(place, func(t *testing.T) {
			var count atomic.Int64
			e := open(t, setup{model: rejecting(t, rejection{400, `{"error":{"message":"Bad"}}`}, &count),
				servers: []sdk.McpServer{playedServer("fs")},
				roots:   []string{dirtest.New(t, "poison.txt", poison)}})
			e.answer(allowOnce)
			e.prompt("First.", modelserver.Say("Done."))
			places[place](e)
			require.Contains(t, e.stored(), "The model's server rejected the request: Bad (HTTP status "+
				"400). The model continues without the new images and documents; the history of "+
				"the session keeps them.")
			require.Contains(t, e.last().Text(), "First.")
			before := count.Load()
			e.goOn()
			e.restart()
			e.goOn()
			require.Equal(t, before, count.Load())
		})
	}
}

// thoughtsBetweenCalls is an answer of Claude that thinks again before its second call.
//
//go:embed testdata/thoughts-between-calls.sse
var thoughtsBetweenCalls string

// Thoughts that a server does not accept, because another one behind a gateway has signed them, are
// forgotten without a word, and also after a restart.
//
// Clause B5, B6.
func TestStaleThoughts(t *testing.T) {
	for name, r := range rejections(t, llm.StaleThoughts) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, rejected := 0, 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				body, _ := io.ReadAll(req.Body)
				switch asked++; {
				case bytes.Contains(body, []byte(`"s1"`)):
					rejected++
					w.WriteHeader(r.status)
					_, _ = io.WriteString(w, r.body)
				case asked == 1:
					_, _ = io.WriteString(w, thoughtsBetweenCalls)
				default:
					_, _ = io.WriteString(w, "data: {\"type\":\"content_block_start\",\"index\":0,"+
						"\"content_block\":{\"type\":\"text\",\"text\":\"Going on.\"}}\n\n"+
						"data: {\"type\":\"message_stop\"}\n\n")
				}
			}))
			t.Cleanup(server.Close)
			e := open(t, setup{roots: []string{dirtest.New(t, "a.txt", "one\n")},
				model: func(m *Model) { m.API, m.BaseURL = Anthropic, server.URL }})
			require.Equal(t, "Going on.", e.prompt("Look.").text())
			e.goOn()
			e.restart()
			e.goOn()
			require.Equal(t, 1, rejected)
		})
	}
}

// A server that rejects everything, because something is configured wrong, does not cost the
// session its history.
//
// Clause B6.
func TestRejectedForTheConfiguration(t *testing.T) {
	t.Parallel()
	e := open(t, setup{roots: []string{dirtest.New(t, "a.txt", "one\n")}})
	e.prompt("First.", modelserver.Read("a.txt"), modelserver.Say("Done."))
	right := e.setup.model
	for _, r := range []rejection{{400, `{"error":{"message":"Bad"}}`}, {404, ""}, {500, ""}} {
		e.setup.model = func(m *Model) {
			server := httptest.NewServer(http.HandlerFunc(
				func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Retry-After-Ms", "1")
					w.WriteHeader(r.status)
					_, _ = io.WriteString(w, r.body)
				}))
			t.Cleanup(server.Close)
			m.BaseURL = server.URL
		}
		e.restart()
		for range 3 {
			require.JSONEq(t, failedResult, string(e.prompt("Go on.").result))
		}
	}
	e.setup.model = right
	e.restart()
	e.goOn()
	require.Len(t, e.results(), 1)
	require.Contains(t, e.results()[0], "one")
	require.Equal(t, "Done.", e.last().Of(modelserver.Said)[0])
}

// The requests of a session are valid by the rules for the order of messages that servers have,
// after cancels, failures, crashes and loads too. A rule that is not known is learned from the
// first rejection.
//
// Clause B6.
func TestOrderOfMessages(t *testing.T) {
	for _, name := range []string{modelserver.Mistral, modelserver.Devstral} {
		for seed := range volume.Of(3, 24) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(uint64(seed), 1))
				dir := dirtest.New(t, "a.txt", "one\ntwo\n", "b.txt", "three\n",
					".claude/commands/greet.md", "Greet $ARGUMENTS.\n")
				e := open(t, setup{roots: []string{dir, dirtest.New(t)},
					servers: []sdk.McpServer{playedServer("fs")}, model: named(name)})
				e.answer(allowOnce)
				restarts := 0
				for range 4 {
					randomTurn(e, r)
					if r.IntN(2) == 0 {
						e.restart()
						restarts++
					}
				}
				e.goOn()
				e.answer(allowOnce)
				require.Equal(t, modelserver.Done, e.prompt("Look.",
					modelserver.UseWith("fs__picture", "{}")).text())
				require.LessOrEqual(t, len(e.model.Rejected()), 1+restarts, e.model.Rejected())
			})
		}
	}
}

// A process that is killed behind the result of a tool leaves a session that Mistral accepts.
//
// Clause B6.
func TestOrderAfterACrash(t *testing.T) {
	e := open(t, setup{roots: []string{dirtest.New(t, "a.txt", "one\n")},
		store: memstore.New(t), model: named(modelserver.Mistral)})
	ended := e.begin("Read.", modelserver.Read(filepath.Join(e.setup.roots[0], "a.txt")), modelserver.Wait())
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	require.NoError(t, e.model.Waiting(ctx))
	require.Eventually(t, func() bool {
		return strings.Contains(e.stored(), `"completed"`)
	}, patience, 10*time.Millisecond, "what is shown is stored a moment later")
	other := &editor{t: t, model: e.model, setup: e.setup, id: e.id}
	other.connect()
	_, err := other.client.LoadSession(t.Context(), e.id, other.lifecycle())
	require.NoError(t, err)
	other.goOn()
	require.Equal(t, []string{"Unexpected role 'user' after role 'tool'"}, e.model.Rejected())
	e.stop()
	<-ended
}

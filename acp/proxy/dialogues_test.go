package proxy_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

var rewrite = flag.Bool("rewrite", false, "write what was seen to testdata/dialogues")

// TestDialogues runs the archives in testdata/dialogues. In each, the file agent has the agent's
// script, profile its profile, client the actions of the client, and answers its answers to
// requests. The other files have the results: of the client's actions, the messages that it gets,
// and those that the agent gets. ODD stands for the constant odd.
//
// Clauses A28, A36, P2, P3, P6, P7, W10.
func TestDialogues(t *testing.T) {
	files, err := filepath.Glob("testdata/dialogues/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			given := map[string]string{}
			kept := archive.Files[:0:0]
			for _, f := range archive.Files {
				given[f.Name] = strings.ReplaceAll(string(f.Data), "ODD", odd)
				if f.Name != "results" && f.Name != "seen" && f.Name != "received" {
					kept = append(kept, f)
				}
			}
			e := dialogueOf(t, given)
			for line := range strings.Lines(given["client"]) {
				e.act(strings.TrimSpace(line))
			}
			seen := e.seen(strings.Count(given["seen"], "\n"))
			came := map[string]string{"results": e.results.String(), "seen": seen,
				"received": strings.Join(append(e.record.Lines(t), ""), "\n")}
			if *rewrite {
				archive.Files = kept
				for _, name := range []string{"results", "seen", "received"} {
					archive.Files = append(archive.Files, txtar.File{Name: name,
						Data: []byte(strings.ReplaceAll(came[name], odd, "ODD"))})
				}
				require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o644))
				return
			}
			for name, text := range came {
				require.Equal(t, given[name], text, name)
			}
		})
	}
}

// dialogue is a client with a proxy, which an action may replace.
type dialogue struct {
	*proxyTest
	options proxy.Options
	session backend.Session
	results strings.Builder
	notes   []string
}

func dialogueOf(t *testing.T, given map[string]string) *dialogue {
	var profile profiles.Profile
	if given["profile"] != "" {
		require.NoError(t, json.Unmarshal([]byte(given["profile"]), &profile))
	}
	e := &dialogue{options: proxy.Options{Profile: profile}}
	e.proxyTest = start(t, given["agent"], e.options)
	for line := range strings.Lines(given["answers"]) {
		method, answer, _ := strings.Cut(strings.TrimSpace(line), " ")
		refusal, refused := strings.CutPrefix(answer, "refuse ")
		if !refused {
			e.client.answer(method, answer)
			continue
		}
		var failed jsonrpc.Error
		require.NoError(t, json.Unmarshal([]byte(refusal), &failed))
		e.client.answers[method] = func() (backend.Raw, error) { return nil, &failed }
	}
	return e
}

// act does what a line says, and notes its result.
func (e *dialogue) act(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	method, params, _ := strings.Cut(rest, " ")
	ctx := e.t.Context()
	var result string
	var err error
	switch verb {
	case "initialize": // another one starts the agent again
		e.close()
		e.closed, e.backend = false, proxy.New(e.command, e.options.WithProcessGrace(patience))
		e.info, err = e.backend.Initialize(ctx, backend.Raw(rest), e.client)
		if err == nil {
			result = fmt.Sprintln(e.info.Kind, e.info.ConnectsServers) +
				string(e.info.Initialize)
		}
	case "open":
		var opened backend.Opened
		var made backend.Session
		made, opened, err = e.backend.Open(ctx, backend.Activation{Cause: backend.New,
			Params: backend.Raw(rest)}, host{e.client})
		if err == nil {
			e.session, result = made, string(opened.Result)+"\n"+e.client.state
		}
	case "prompt":
		result, err = await(e.t, e.session.Prompt(ctx, backend.Raw(rest), turn{e.client}))
	case "call":
		result, err = await(e.t, e.session.Call(ctx, method, backend.Raw(params)))
	case "outside": // of sessions
		result, err = await(e.t, e.backend.Call(ctx, method, backend.Raw(params)))
	case "wait": // for the next note
		e.notes = append(e.notes, e.client.next())
		return
	case "notify":
		e.session.Notify(ctx, method, backend.Raw(params))
		return
	case "notify-outside":
		e.backend.Notify(ctx, method, backend.Raw(params))
		return
	case "close":
		var raw backend.Raw
		raw, err = e.session.(backend.Closer).CloseFor(ctx, backend.Raw(rest))
		result = string(raw)
	case "stored": // a session that is not open
		var raw backend.Raw
		raw, err = e.backend.(backend.Foreign).CallStored(ctx, method, []byte(`{"v":1,"id":"theirs"}`),
			backend.Raw(params))
		result = string(raw)
	case "list":
		result, err = e.list()
	default:
		require.Fail(e.t, "unknown action: "+line)
	}
	e.note(verb, result, err)
}

func (e *dialogue) note(verb, result string, err error) {
	fmt.Fprintln(&e.results, verb)
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	switch {
	case ok:
		result += fmt.Sprintf("error %d %s %s", refused.Code, refused.Message, refused.Data)
	case err != nil:
		result += "error " + err.Error()
	}
	for line := range strings.Lines(result) {
		fmt.Fprintln(&e.results, " ", strings.TrimSuffix(line, "\n"))
	}
}

// list returns the agent's own sessions up to an error.
func (e *dialogue) list() (string, error) {
	var all strings.Builder
	f := e.backend.(backend.Foreign)
	for s, err := range f.Sessions(e.t.Context(), nil) {
		if err != nil {
			return all.String(), err
		}
		fmt.Fprintf(&all, "%s in %q, %q of %d, archived %v\n", f.Key(s.State), s.Cwd, s.Title,
			s.Updated.Year(), s.Archived)
	}
	return all.String(), nil
}

// seen returns the first n notes of the client, and those that have come since. It ends the agent.
func (e *dialogue) seen(n int) string {
	if *rewrite {
		time.Sleep(time.Second)
	}
	for !*rewrite && len(e.notes) < n || len(e.client.notes) > 0 {
		e.notes = append(e.notes, e.client.next())
	}
	e.close()
	for len(e.client.notes) > 0 {
		e.notes = append(e.notes, e.client.next())
	}
	return strings.Join(append(e.notes, ""), "\n")
}

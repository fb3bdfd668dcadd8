package conform

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/conform/schema"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// Options say what to check.
type Options struct {
	// Command starts the agent.
	Command process.Command
	// Restrict, if it is not nil, puts the command in a sandbox for these folders.
	Restrict func(c process.Command, folders []string) (process.Command, error)
	// Version is that of acp-agent.
	Version string
	// Only selects checks by id, clause or family, such as A4.relative, A4 or A. None means all.
	Only []string
	// Prompt also tries what needs a prompt, and Draft what only the draft demanded.
	Prompt, Draft bool
	// Patience is how long the agent may take to answer. It has three times as long to start, and
	// six times for a turn.
	Patience time.Duration
	// Begins, if it is not nil, is called with each check.
	Begins func(id string)
}

const (
	// limit is how long all checks may take.
	limit = 15 * time.Minute
	// restarts is how often the agent is started again after it has ended or hung.
	restarts = 4
)

// run is the state of a run.
type run struct {
	Options
	command process.Command
	secrets *secret.Scrubber
	scratch string
	fill    *strings.Replacer // of the names of folders in a row
	rows    []row
	results map[string]Result

	intro introduction
	*agent
	current string // the phase
	last    string // the last phase that uses sessions
	started bool   // at least one process
	failed  error  // why the agent is not started any more
	left    int    // restarts that are left
	schema  *schema.Schema
	judged  map[string]judgement

	opened map[string]opened // the sessions, by name
	loaded map[string]opened // the session plain in another process, at first, by method
	made   map[string]bool   // every session, by id
}

// opened is how a session was opened that the checks share.
type opened struct {
	id     string
	err    error            // why it was not
	before []rawrpc.Message // what came before the answer
	turn   error            // how its prompt ended, if there was one
	lines  []rawrpc.Line
}

// Run checks an agent. It starts the agent in a directory with three folders, which it removes:
//
//   - start: for each check a process, with another version of the protocol;
//   - main: one process for most checks, with the sessions plain, two and other;
//   - again: another process, which finds these sessions as they are stored;
//   - lines: one for lines that are not ACP, again after each that ends it;
//   - end: one whose input ends;
//   - all: no process, but everything that was sent meanwhile.
//
// The error is about the options.
func Run(ctx context.Context, o Options) (Report, error) {
	chosen, err := choose(o.Only)
	if err != nil {
		return Report{}, err
	}
	newest, err := schema.Newest()
	if err != nil {
		return Report{}, err
	}
	r := &run{
		Options: o, command: o.Command, rows: chosen, left: restarts, last: "main",
		secrets: secret.OfCommand(o.Command.Args, o.Command.Env),
		results: map[string]Result{}, judged: map[string]judgement{}, schema: newest,
		opened: map[string]opened{}, made: map[string]bool{}, loaded: map[string]opened{},
	}
	if r.scratch, err = os.MkdirTemp("", "acp-agent-conform"); err != nil {
		return Report{}, err
	}
	defer os.RemoveAll(r.scratch)
	if err := r.prepareFolders(); err != nil {
		return Report{}, err
	}
	tooLong := fmt.Errorf("all checks took over %v", limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, tooLong)
	defer cancel()
	if slices.ContainsFunc(chosen, func(c row) bool { return c.Phase == "again" }) {
		r.last, r.current = "again", "main"
		_ = r.alive(ctx) // it makes the sessions; an error is that of each check
	}
	for _, phase := range []string{"main", "again", "start", "lines", "end", "all"} {
		r.phase(ctx, phase)
	}
	return r.report(), nil
}

// prepareFolders makes the folders of the sessions, and adapts the command to them.
func (r *run) prepareFolders() (err error) {
	if r.scratch, err = filepath.EvalSymlinks(r.scratch); err != nil {
		return err
	}
	var folders, names []string
	for _, name := range []string{"A", "B", "C", "U"} {
		base := map[bool]string{true: "naïve Ж 文", false: strings.ToLower(name)}[name == "U"]
		folder := filepath.Join(r.scratch, base)
		if err := os.MkdirAll(filepath.Join(folder, "inner"), 0o700); err != nil {
			return err
		}
		quoted, _ := json.Marshal(folder) // a text
		names = append(names, "$"+name, strings.Trim(string(quoted), `"`))
		folders = append(folders, folder)
	}
	r.fill = strings.NewReplacer(names...)
	if r.Restrict != nil {
		if r.command, err = r.Restrict(r.command, folders); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folders[0], "file"), nil, 0o600)
}

// phase tries the selected checks of a phase.
func (r *run) phase(ctx context.Context, phase string) {
	r.current = phase
	if phase == "lines" {
		r.left += len(r.rows) // every line may end it
	}
	for _, row := range r.rows {
		if row.Phase == phase {
			if r.Begins != nil {
				r.Begins(row.ID)
			}
			r.results[row.ID] = r.try(ctx, row)
		}
	}
	if phase == r.last && r.agent != nil {
		r.clean(ctx)
	}
	r.leave()
}

// try tries a check.
func (r *run) try(ctx context.Context, c row) Result {
	result, t := Result{Check: c.Check}, &trial{run: r, ctx: ctx, row: c}
	err := r.skips(ctx, c)
	if missing := r.missing(c); missing != "" && err == nil {
		return Result{Check: c.Check, Verdict: NotOffered, Reason: missing + " is not advertised"}
	}
	if err == nil {
		if r.agent != nil {
			t.from = len(r.Lines())
		}
		err = t.carryOut()
	}
	result.Verdict, result.Reason = c.verdict(err)
	result.Reason = r.shown(cmp.Or(result.Reason, t.note))
	if r.agent != nil && result.Verdict != NotTried && t.lines == nil {
		t.lines = r.Lines()[t.from:]
	}
	result.Sent, result.Received = r.exchange(t.lines)
	return result
}

// missing returns a capability that a check needs and the agent has not advertised, or "".
func (r *run) missing(c row) string {
	for _, capability := range c.Needs {
		if !r.intro.offers(capability) {
			return capability
		}
	}
	return ""
}

// skips returns why a check is not tried. It starts the agent if that is necessary.
func (r *run) skips(ctx context.Context, c row) error {
	switch {
	case c.Draft && !r.Draft:
		return notTried("only the draft demands it: --draft")
	case c.Prompt && !r.Prompt:
		return notTried("it needs a prompt: --prompt")
	case ctx.Err() != nil:
		return notTried("%v", context.Cause(ctx))
	case c.Phase == "start" && r.intro.ProtocolVersion != nil, c.Phase == "all" && r.started:
		return nil // it needs no process
	}
	if err := r.alive(ctx); c.ID == "W10.version-1" && err != nil {
		return err
	} else if err != nil {
		return notTried("%v", err)
	}
	if version := string(r.intro.ProtocolVersion); version != "1" && c.ID != "W10.version-1" {
		return notTried("it speaks version %s", version)
	}
	sessions := strings.HasPrefix(c.Send, protocol.SessionPrefix) && c.Offers == ""
	if _, err := r.session("plain"); sessions && err != nil {
		return err
	}
	return nil
}

// alive starts the agent, again if it has ended or hung.
func (r *run) alive(ctx context.Context) error {
	switch {
	case r.failed != nil:
		return r.failed
	case r.agent != nil && r.usable():
		return nil
	case r.agent != nil:
		r.leave()
		if r.left--; r.left == 0 {
			r.failed = errors.New("the agent ended or hung too often")
			return r.failed
		}
	}
	if err := r.begin(ctx); err != nil {
		r.failed = fmt.Errorf("the agent did not start: %w", err)
	}
	return r.failed
}

// begin starts a process of the agent.
func (r *run) begin(ctx context.Context) (err error) {
	if r.agent, err = r.launch(ctx); err != nil {
		return err
	}
	r.started = true
	began, err := r.initialize(ctx, 1, r.Version)
	if err := refusal(began, err); err != nil {
		return err
	}
	r.intro = introduction{}
	if err := json.Unmarshal(began.Result, &r.intro); err != nil {
		return fmt.Errorf("the answer to initialize is unreadable: %w", err)
	}
	if r.current != "main" {
		return nil
	}
	if len(r.opened) == 0 {
		r.open(ctx, "plain", `{"cwd":"$A","mcpServers":[]}`)
		if r.intro.offers(protocol.AdditionalDirectories) {
			r.open(ctx, "two", `{"cwd":"$A","additionalDirectories":["$B","$C"],"mcpServers":[]}`)
		}
	}
	r.open(ctx, "other", `{"cwd":"$B","mcpServers":[]}`) // again in each process: it is used open
	return nil
}

// open makes a session that the checks share.
func (r *run) open(ctx context.Context, name, params string) {
	if !r.usable() {
		return
	}
	from, line := r.Count(), len(r.Lines())
	answer, err := r.ask(ctx, protocol.SessionNew, json.RawMessage(r.fill.Replace(params)))
	o := opened{id: r.created(answer), err: refusal(answer, err),
		before: before(r.Messages()[from:], answer)}
	switch {
	case answer.Error != nil && answer.Error.Code == protocol.CodeAuthRequired:
		o.err = notTried("the agent wants you to sign in first")
	case o.err == nil && o.id == "":
		o.err = errors.New("the answer to session/new has no sessionId")
	case o.err == nil && r.Prompt:
		short := prompt(o.id, "Reply with one word.")
		o.turn = refusal(r.ask(ctx, protocol.SessionPrompt, short))
	}
	o.lines = r.Lines()[line:]
	r.opened[name] = o
}

// session returns the id of a session that the checks share.
func (r *run) session(name string) (string, error) {
	o, known := r.opened[name]
	if !known {
		return "", notTried("there is no such session")
	}
	if o.err != nil {
		return "", notTried("session/new made no session: %v", o.err)
	}
	return o.id, nil
}

// before returns the messages that came before an answer.
func before(messages []rawrpc.Message, answer rawrpc.Message) []rawrpc.Message {
	at := slices.IndexFunc(messages, func(m rawrpc.Message) bool {
		return m.IsResponse(string(answer.ID))
	})
	return messages[:max(at, 0)]
}

func prompt(session, text string) map[string]any {
	block := map[string]any{"type": "text", "text": text}
	return map[string]any{"sessionId": session, "prompt": []any{block}}
}

// created returns the id of the session that an answer has made, and "" if it has made none.
func (r *run) created(answer rawrpc.Message) string {
	var result struct{ SessionID string }
	_ = answer.Decode(&result) // then the id is empty
	if result.SessionID != "" {
		r.made[result.SessionID] = true
	}
	return result.SessionID
}

// clean deletes or closes the sessions that were made.
func (r *run) clean(ctx context.Context) {
	method := protocol.SessionClose
	if r.intro.offers("delete") {
		method = protocol.SessionDelete
	} else if !r.intro.offers("close") {
		return
	}
	for id := range r.made {
		if r.usable() {
			_, _ = r.ask(ctx, method, map[string]any{"sessionId": id}) // as far as it can
		}
	}
}

// leave ends the process. What answers lines that are not ACP is not for the checks of everything.
func (r *run) leave() {
	if r.agent == nil {
		return
	}
	r.stop()
	if r.current != "lines" && r.current != "start" {
		r.judgeAll(r.Lines())
	}
	r.agent = nil
}

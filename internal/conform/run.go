package conform

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

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
	folders map[string]string // by the names that rows use
	rows    []row
	results map[string]Result
	judged  map[string]judgement

	*agent
	intro  introduction
	phase  string
	failed error // why the agent is not started any more
	left   int   // restarts that are left

	sessions map[string]string // the ids of those that the checks share, by the names of rows
	asked    map[string]bool   // the names of those that this process was asked for
	made     map[string]bool   // the ids of all sessions
	early    bool              // whether an update of one came before the answer that names it
}

// Run checks an agent. It starts the agent in a directory with three folders, which it removes:
//
//   - main: one process for most checks, with the sessions that they share;
//   - again: another process, which finds these sessions as they are stored;
//   - start: for each check a process, with another version of the protocol;
//   - lines: one for lines that are not ACP, again after each that ends it;
//   - end: one whose input ends;
//   - all: no process, but everything that was sent meanwhile.
//
// The error is about the options.
func Run(ctx context.Context, o Options) (Report, error) {
	all, err := choose(o.Only)
	if err != nil {
		return Report{}, err
	}
	if _, err := schema.Follow(true); err != nil {
		return Report{}, err
	}
	r := &run{
		Options: o, command: o.Command, rows: all, left: restarts,
		secrets: secret.OfCommand(o.Command.Args, o.Command.Env),
		results: map[string]Result{}, judged: map[string]judgement{},
		sessions: map[string]string{}, asked: map[string]bool{}, made: map[string]bool{},
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
	for _, phase := range []string{"main", "again", "start", "lines", "end", "all"} {
		r.try(ctx, phase)
	}
	return r.report(), nil
}

// prepareFolders makes the folders of the sessions, and adapts the command to them.
func (r *run) prepareFolders() (err error) {
	if r.scratch, err = filepath.EvalSymlinks(r.scratch); err != nil {
		return err
	}
	r.folders = map[string]string{}
	for name, base := range map[string]string{"A": "a", "B": "b", "C": "c", "U": "naïve Ж 文"} {
		r.folders[name] = filepath.Join(r.scratch, base)
		if err := os.MkdirAll(filepath.Join(r.folders[name], "inner"), 0o700); err != nil {
			return err
		}
	}
	if r.Restrict != nil {
		folders := slices.Sorted(maps.Values(r.folders))
		if r.command, err = r.Restrict(r.command, folders); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(r.folders["A"], "file"), nil, 0o600)
}

// try tries the chosen checks of a phase, and those that make the sessions of others.
func (r *run) try(ctx context.Context, phase string) {
	r.phase = phase
	if phase == "lines" {
		r.left += len(r.rows) // every line may end it
	}
	shared := slices.ContainsFunc(r.rows, func(c row) bool {
		return c.chosen && slices.Contains(sharing, c.Phase)
	})
	for _, c := range r.rows {
		_, tried := r.results[c.ID] // before a check that needs it
		if tried || c.Phase != phase || !c.chosen && (c.Makes == "" || !shared) {
			continue
		}
		if r.Begins != nil {
			r.Begins(c.ID)
		}
		r.attempt(ctx, c)
	}
	used := func(c row) bool { return c.chosen && c.Phase == "again" }
	if phase == "again" || phase == "main" && !slices.ContainsFunc(r.rows, used) {
		r.clean(ctx)
	}
	r.leave()
}

// sharing are the phases with checks that share sessions, or look at what was sent in them.
var sharing = []string{"main", "again", "all"}

// attempt tries a check.
func (r *run) attempt(ctx context.Context, c row) Result {
	result, t := Result{Check: c.Check}, &trial{run: r, ctx: ctx, row: c}
	err := t.prepare()
	if err == nil {
		if r.agent != nil {
			t.from = len(r.Lines())
			r.asked[c.Makes] = true
		}
		err = t.carryOut()
	}
	result.Verdict, result.Reason = c.verdict(err)
	result.Reason, result.before = r.shown(cmp.Or(result.Reason, t.note)), t.before
	_, skipped := errors.AsType[untried](err)
	if r.agent != nil && !skipped && t.lines == nil {
		t.lines = r.Lines()[t.from:]
	}
	result.Sent, result.Received = r.exchanged(t.lines)
	r.results[c.ID] = result
	return result
}

// alive starts the agent, again if it has ended or hung.
func (r *run) alive(ctx context.Context) error {
	switch {
	case r.failed != nil:
		return r.failed
	case r.phase == "start":
		r.leave()
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
	if r.agent, err = r.launch(ctx); err != nil || r.phase == "start" {
		return err
	}
	delete(r.sessions, "OTHER") // it is used open
	r.asked = map[string]bool{}
	began, err := r.ask(ctx, protocol.Initialize, r.introduce(1))
	if err := refusal(began, err); err != nil {
		return err
	}
	r.intro = introduction{}
	if err := json.Unmarshal(began.Result, &r.intro); err != nil {
		return fmt.Errorf("the answer to initialize is unreadable: %w", err)
	}
	return nil
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
		if r.agent != nil && r.usable() {
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
	if r.phase != "lines" && r.phase != "start" {
		r.judgeAll(r.Lines())
	}
	r.agent = nil
}

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/internal/cli/runner"
	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

type runFlags struct {
	rootFlags
	json, yes bool
	// mcp are MCP servers as NAME=COMMAND, and mcpConfigs are files with MCP servers.
	mcp, mcpConfigs []string
	worktree        string // the name of worktrees to open the session in, "" for none
	session         runner.Session
}

// newRun returns the command that is a small ACP client, of this program itself.
func newRun(set *settings) *cobra.Command {
	r := runFlags{rootFlags: rootFlags{cwd: "."}}
	return set.newCommand("run", cobra.ArbitraryArgs, needsAll, flags{"cwd": &r.cwd,
		"dir": &r.dirs, "load": &r.session.Load, "resume": &r.session.Resume,
		"fork": &r.session.Fork, "continue": &r.session.Last, "worktree": &r.worktree,
		"mcp": &r.mcp, "mcp-config": &r.mcpConfigs, "mode": &r.session.Mode,
		"thought-level": &r.session.ThoughtLevel, "yes": &r.yes, "json": &r.json},
		func(cmd *cobra.Command, args []string) error {
			words, command := splitAtDash(cmd, args)
			if err := r.check(cmd); err != nil {
				return err
			}
			d, err := set.downstream(set.choice(command))
			if err != nil {
				return err
			}
			r.session.CwdGiven, r.session.Dirs = cmd.Flags().Changed("cwd"), r.dirs
			if screen, ok := terminal.OpenScreen(set.in, set.out); ok && len(words) == 0 &&
				!r.json {
				return r.chat(cmd.Context(), screen, set, d)
			}
			prompt, err := readPrompt(cmd.Context(), set.streams, words, set.maxLine)
			if err != nil {
				return err
			}
			return runPrompt(cmd.Context(), set, d, r, prompt, func(id string) {
				fmt.Fprintln(set.err, "session", id)
			})
		})
}

// check reports flags that do not fit together.
func (r *runFlags) check(cmd *cobra.Command) error {
	if err := exclusive(cmd, "load resume fork continue", "load resume fork worktree"); err != nil {
		return err
	}
	for _, name := range []string{"load", "resume", "fork"} {
		if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return usage.Errorf("--%s needs a session: its id, or %s", name, sessions.Last)
		}
	}
	if cmd.Flags().Changed("worktree") && r.worktree == "" {
		return usage.Errorf("--worktree needs a name, such as fix-login")
	}
	return nil
}

// readPrompt returns the prompt in args and what is piped to standard input. Without a prompt, or
// with "-", standard input has the prompt. Together they may have at most max bytes.
func readPrompt(
	ctx context.Context, s streams, args []string, max int,
) (p runner.Prompt, err error) {
	p.Text = strings.Join(args, " ")
	input := io.LimitReader(s.input(ctx, "the prompt"), int64(max)+1)
	var read []byte
	switch {
	case p.Text == "-", len(args) == 0 && !s.interactive():
		read, err = io.ReadAll(input)
		p.Text = string(read)
	case s.isPiped():
		read, err = io.ReadAll(input)
		p.Data = string(read)
	}
	switch {
	case err != nil:
		return p, fmt.Errorf("cannot read the prompt: %w", err)
	case strings.LastIndexByte(p.Text, '/') > 0 && namedfile.IsDir(p.Text):
		return p, usage.Errorf("%s is a folder, not a prompt: --dir %[1]s adds it",
			text.Printable(p.Text))
	case len(p.Text)+len(p.Data) > max:
		return p, usage.Errorf("the prompt is longer than %d bytes; --max-line changes the limit",
			max)
	case strings.TrimSpace(p.Text) == "" && strings.TrimSpace(p.Data) == "":
		return p, usage.Errorf(
			"run needs a prompt, such as /roots, as an argument or on standard input; " +
				"see acp-agent run --help")
	}
	return p, nil
}

// chat lets the user type prompts, and sends them in one session.
func (r runFlags) chat(
	ctx context.Context, screen *terminal.Screen, set *settings, d downstream,
) error {
	err := terminal.Say(set.out, "Chat with %s. Ctrl-C stops an answer, and "+
		"an empty line ends the chat.", d.name())
	if err == nil && d.name() == explore.Kind && set.config.Agent+set.config.Model == "" {
		err = terminal.Say(set.out, "No agent is configured, so acp-agent itself answers; /help "+
			"lists what it can, and acp-agent setup chooses an agent.")
	}
	if err != nil {
		return err
	}
	id := ""
	err = screen.Chat(ctx, func(ctx context.Context, prompt string) error {
		turn, done := set.interrupts.only(ctx)
		defer done()
		err := runPrompt(turn, set, d, r.goingOn(id), runner.Prompt{Text: prompt},
			func(opened string) { id = opened })
		if id == "" || ctx.Err() != nil { // no later prompt could be answered
			return err
		}
		if _, reported := errors.AsType[*statusError](err); err != nil && !reported {
			set.note("%s", text.Plain(err.Error()))
		}
		return nil
	})
	if id != "" {
		set.note("to go on: acp-agent run --continue, or acp-agent sessions")
	}
	return err
}

// goingOn returns the flags for a further prompt in a session, or these if it is "".
func (r runFlags) goingOn(id string) runFlags {
	if id != "" {
		r.worktree = ""
		r.session = runner.Session{Resume: id, Dirs: r.session.Dirs, CwdGiven: r.session.CwdGiven}
	}
	return r
}

// runPrompt serves itself as it serves an editor, and sends one prompt. opened gets the id of the
// session.
func runPrompt(
	ctx context.Context, set *settings, d downstream, r runFlags, prompt runner.Prompt,
	opened func(id string),
) (err error) {
	show, own := terminal.NewPrinter(set.out), *set // the settings of this turn
	own.err = show.Aside(set.err)
	set = &own
	setup, err := r.setup(ctx, set)
	if err != nil {
		return err
	}
	r.session.Login = d.login()
	set.keepDirs = set.keepDirs || r.session.KeepsDirs()
	permit := r.permissions(set.streams, show)
	c, end := runner.Connect(context.WithoutCancel(ctx), r.options(set, show, permit),
		func(ctx context.Context, in io.Reader, out io.Writer) error {
			return set.serve(ctx, d, in, out)
		})
	watching, unwatch := context.WithCancel(ctx)
	var watch sync.WaitGroup
	if !r.json {
		watch.Go(func() { show.Watch(watching) })
	}
	turn, err := r.session.Turn(ctx, opened, c, setup, prompt)
	unwatch()
	watch.Wait()
	failed := end()
	if !r.json {
		show.End()
		if cost := runner.Cost(turn.Result); cost != "" {
			_ = terminal.Say(set.err, "%s", cost)
		}
	}
	switch {
	case ctx.Err() != nil:
		set.note("interrupted")
		return &statusError{statusInterrupted}
	case failed != nil && (err == nil || errors.Is(err, jsonrpc.ErrClosed)):
		return failed
	case err != nil:
		return set.explainAdapter(runner.Explain(err), d.command.Path)
	}
	return cmp.Or(show.Err(), permit.Err(), turnError(turn))
}

// setup returns the folders and MCP servers of the session, of which it makes the worktrees.
func (r *runFlags) setup(ctx context.Context, set *settings) (s client.Setup, err error) {
	s.Roots, err = r.roots()
	if err == nil && r.worktree != "" {
		s.Roots, err = enterWorktrees(ctx, set, r.worktree, r.rootFlags)
		r.session.Dirs = s.Roots.Additional().Strings()
	}
	if err == nil {
		s.MCPServers, err = runner.Servers(r.mcp, r.mcpConfigs)
	}
	return s, err
}

// options returns the options of the client, which shows what the agent does.
func (r runFlags) options(
	set *settings, show *terminal.Printer, permit *runner.Permissions,
) client.Options {
	o := client.Options{
		Name: "acp-agent run", Version: ownVersion().Number, MaxLine: set.maxLine,
		Permission:   permit.Answer,
		Capabilities: json.RawMessage(`{"session":{"notices":{},"compaction":{}}}`),
	}
	o.Updates = func(ctx context.Context, u client.Update) {
		permit.Note(u.Update)
		if !r.json {
			show.Update(ctx, u)
		}
	}
	if r.json {
		o.Trace = func(sent bool, line []byte) {
			if sent {
				line = masked(line) // it may have secrets of MCP servers
			}
			show.Line(sent, line)
		}
	}
	return o
}

// turnError returns an error for a turn that did not end as it should.
func turnError(end client.TurnEnd) error {
	if end.StopReason != sdk.StopReasonEndTurn {
		return fmt.Errorf("the agent stopped before the end of the turn: %s", end.StopReason)
	}
	if string(strictjson.Find(protocol.FindOurs(end.Result), "failed")) == "true" {
		return errors.New("the turn failed; the answer says why")
	}
	return nil
}

// permissions returns what answers requests for permission: the user, where they see a terminal.
func (r runFlags) permissions(s streams, show *terminal.Printer) *runner.Permissions {
	p := &runner.Permissions{Show: show, Yes: r.yes}
	switch {
	case r.json: // which prints the requests
		p.Show = terminal.NewPrinter(io.Discard)
	case r.yes, !s.interactive():
	case terminal.Is(s.out):
		p.User = terminal.NewReader(s.in)
	case terminal.Is(s.err):
		p.Show, p.User = terminal.NewPrinter(s.err), terminal.NewReader(s.in)
	}
	return p
}

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/model"
	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// pickedSessions are the sessions of a store, of which the user chooses one on a screen.
type pickedSessions struct {
	set   *settings
	store sessionstore.Store
}

// List implements [terminal.Sessions].
func (p pickedSessions) List(ctx context.Context) (rows []terminal.Row, err error) {
	q := sessionstore.Query{Archive: sessionstore.WithoutArchived}
	for one, err := range sessions.All(ctx, p.store, q) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, p.row(one))
	}
	return rows, nil
}

// Search implements [terminal.Sessions].
func (p pickedSessions) Search(ctx context.Context, what string) ([]terminal.Row, error) {
	q := sessionstore.SearchQuery{Text: what, Limit: sessionstore.MaxPageSize}
	found, err := search(ctx, io.Discard, p.store, q)
	var rows []terminal.Row
	for _, one := range found {
		row := p.row(one.Session)
		row.Detail = terminal.OneLine(one.Line)
		if !slices.ContainsFunc(rows, func(r terminal.Row) bool { return r.ID == row.ID }) {
			rows = append(rows, row)
		}
	}
	return rows, err
}

// row describes a session on one line.
func (p pickedSessions) row(one sessionstore.Session) terminal.Row {
	return terminal.Row{
		Session: pickedSession{p, one}, ID: string(one.ID), Updated: one.Updated,
		Title: cmp.Or(sessions.ListedTitle(one), "-"),
		Agent: conversation.AgentName(one.Agent), Detail: folders(one.Keys.Roots.All(), true),
	}
}

// pickedSession is a session that the user has chosen in the picker.
type pickedSession struct {
	pickedSessions
	one sessionstore.Session
}

// Print implements [terminal.Session].
func (p pickedSession) Print(ctx context.Context) error {
	return showSession(ctx, p.set.out, p.store, p.one)
}

// Delete implements [terminal.Session].
func (p pickedSession) Delete(ctx context.Context) error {
	return p.set.deleteSession(p.store, ctx, p.one.ID)
}

// Export implements [terminal.Session].
func (p pickedSession) Export(ctx context.Context, file string) error {
	format, err := sessions.FormatOf("html", file)
	if err != nil {
		return err
	}
	return format.Export(ctx, p.set.out, p.store, p.one, file)
}

// Continue implements [terminal.Session].
func (p pickedSession) Continue(way terminal.Way) terminal.Conversation {
	if obstacle := p.set.obstacle(p.one); obstacle != "" {
		return terminal.Conversation{Obstacle: obstacle}
	}
	c := terminal.Conversation{Send: p.sender(way)}
	if p.one.Agent.Kind == model.Kind && p.set.soleModel() == "" {
		c.Models = p.set.config.ModelIDs()
	}
	return c
}

// sender returns a function that runs a prompt with a model, or with the agent of the session.
// Ctrl-C ends only the answer.
func (p pickedSession) sender(
	way terminal.Way,
) func(ctx context.Context, model, prompt string) error {
	flag, id := "--resume", string(p.one.ID) // of the next run
	if way == terminal.Fork {
		flag = "--fork"
	}
	return func(ctx context.Context, model, prompt string) error {
		args := append([]string{"run", flag, id}, p.set.here("state-dir", "store")...)
		if model != "" {
			args = append(args, "--model="+model)
		} else {
			args = append(args, p.set.agentFlags(p.one.Agent)...)
		}
		if strings.HasPrefix(prompt, "-") {
			prompt = " " + prompt // it is not a flag
		}
		turn, done := p.set.interrupts.only(ctx)
		defer done()
		s := p.set.streams
		s.interrupts = nil
		s.opened = func(opened string) { id, flag = opened, "--resume" } // otherwise it may start next time
		if status := run(turn, append(args, prompt), s); ctx.Err() != nil {
			return &statusError{status}
		}
		return nil
	}
}

var errNoModel = errors.New("no model is configured; acp-agent models explains how to add one")

// obstacle says why the picker cannot continue a session, and what to do, or returns "".
func (set *settings) obstacle(one sessionstore.Session) string {
	if _, command := set.agentArguments(one.Agent); command != "" {
		// A stored name may mean another program here, or come from an imported session.
		return "to start its agent, run: " + set.continueLine(one, string(one.ID), "PROMPT")
	}
	if one.Agent.Kind == model.Kind && len(set.config.Models) == 0 {
		return errNoModel.Error()
	}
	for _, dir := range one.Keys.Roots.All() {
		if path := dir.String(); !namedfile.IsDir(path) {
			return fmt.Sprintf("the folder %s does not exist: create it, or run: acp-agent "+
				"sessions move %s NEW-FOLDER", text.Printable(path), text.ShellWord(path))
		}
	}
	return ""
}

// agentFlags returns the flags that choose the agent of a session that has no obstacle.
func (set *settings) agentFlags(owner sessionstore.Agent) []string {
	if flags, _ := set.agentArguments(owner); flags != nil {
		return flags
	}
	return []string{"--agent=", "--model="}
}

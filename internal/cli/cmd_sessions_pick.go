package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/acp-agent/acp-agent/acp/model"
	"github.com/acp-agent/acp-agent/internal/cli/runner"
	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// pickedSessions are the sessions of a store as [terminal.Sessions], for the picker.
type pickedSessions struct {
	set    *settings
	store  sessionstore.Store
	screen *terminal.Screen
}

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
		Title: cmp.Or(sessions.TitleLine(one), "-"),
		Agent: conversation.AgentName(one.Agent), Detail: folders(one.Keys.Roots.All(), true),
	}
}

// pickedSession is one of them as a [terminal.Session], which the user has chosen.
type pickedSession struct {
	pickedSessions
	one sessionstore.Session
}

func (p pickedSession) Print(ctx context.Context) error {
	return showSession(ctx, p.set.out, p.store, p.one)
}

func (p pickedSession) Delete(ctx context.Context) error {
	return p.set.deleteSession(p.store, ctx, p.one.ID)
}

func (p pickedSession) Export(ctx context.Context, file string) error {
	format, err := sessions.FormatOf("html", file)
	if err != nil {
		return err
	}
	return format.Export(ctx, p.set.out, p.store, p.one, file)
}

// Chat continues the session with its own agent, whatever is configured to answer.
func (p pickedSession) Chat(ctx context.Context, fork bool) error {
	agent, _ := p.set.agentOfSession(p.one.Agent)
	d, err := p.set.downstream(agent)
	if err != nil {
		return err
	}
	session := runner.Session{Resume: string(p.one.ID)}
	if fork {
		session = runner.Session{Fork: string(p.one.ID)}
	}
	r := runFlags{rootFlags: rootFlags{cwd: "."}, session: session}
	return r.chat(ctx, p.screen, p.set, d)
}

var errNoModel = errors.New("no model is configured; acp-agent models explains how to add one")

func (p pickedSession) Obstacle() string {
	set, one := p.set, p.one
	if _, command := set.agentOfSession(one.Agent); command != "" {
		// A stored name may mean another program here, or come from an imported session.
		return "to start its agent, run: " + set.continueLine(one, string(one.ID), "PROMPT")
	}
	switch {
	case one.Agent.Kind != model.Kind:
	case len(set.config.Models) == 0:
		return errNoModel.Error()
	case set.soleModel() == "":
		return "several models are configured; name one: " +
			set.continueLine(one, string(one.ID), "PROMPT")
	}
	for _, dir := range one.Keys.Roots.All() {
		if path := dir.String(); !namedfile.IsDir(path) {
			return fmt.Sprintf("the folder %s does not exist: create it, or run: acp-agent "+
				"sessions move %s NEW-FOLDER", text.Printable(path), text.ShellWord(path))
		}
	}
	return ""
}

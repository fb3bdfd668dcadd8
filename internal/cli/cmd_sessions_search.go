package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func newSessionsSearch(set *settings) *cobra.Command {
	limit := 20
	return set.newCommand("search", takes(1, math.MaxInt, "the TEXT to look for", ""), needsStore,
		flags{"limit": intValue{&limit, 1}, "user": &set.user, "json": &set.json},
		func(cmd *cobra.Command, args []string) error {
			q := sessionstore.SearchQuery{Text: strings.Join(args, " "), Limit: limit}
			if len(q.Terms()) == 0 {
				return usage.Errorf("there is no word in %q to look for: give one that was said",
					q.Text)
			}
			if limit > sessionstore.MaxPageSize {
				return usage.Errorf("--limit is at most %d: search for more words to find less",
					sessionstore.MaxPageSize)
			}
			return set.withStore(func(store sessionstore.Store) error {
				found, err := search(cmd.Context(), set.err, store, q)
				if err != nil {
					return err
				}
				return printFound(set, found)
			})
		})
}

// search searches a store. If that takes long it says why.
func search(
	ctx context.Context, stderr io.Writer, store sessionstore.Store, q sessionstore.SearchQuery,
) ([]sessionstore.Found, error) {
	slow := time.AfterFunc(2*time.Second, func() {
		_ = terminal.Say(stderr, "acp-agent: preparing stored conversations for the first search …")
	})
	defer slow.Stop()
	return store.Search(ctx, q)
}

// foundReport describes a message that was found.
type foundReport struct {
	Session sessions.Report      `json:"session"`
	Role    sessionstore.Role    `json:"role"`
	Time    time.Time            `json:"time"`
	Line    string               `json:"line"`
	Matches []sessionstore.Match `json:"matches"`
	// Continue is the command that continues the session.
	Continue string `json:"continue"`
}

// printFound prints the messages that were found, those of a session together.
func printFound(set *settings, found []sessionstore.Found) error {
	if len(found) == 0 {
		set.note("nothing found")
	}
	var reports []foundReport
	var order []sessionstore.Session
	messages := make(map[sessionstore.ID][]sessionstore.Found)
	for _, one := range found {
		id := one.Session.ID
		if messages[id] == nil {
			order = append(order, one.Session)
		}
		messages[id] = append(messages[id], one)
		reports = append(reports, foundReport{Session: sessions.NewReport(one.Session),
			Role: one.Role, Time: one.Time, Line: one.Line, Matches: one.Matches,
			Continue: set.continueLine(one.Session, string(id), "PROMPT")})
	}
	return printLines(set, reports, func() (err error) {
		for i, l := range listings(set.out, order) {
			said := strings.Repeat("\n", min(i, 1)) + fmt.Sprintf("%s  %s  %s  %s\n  %s", l.id,
				l.updated, l.agent, l.folders, l.title)
			for _, message := range messages[order[i].ID] {
				said += "\n  " + speakers[message.Role] + ": " + marked(set.out, message)
			}
			err = cmp.Or(err, terminal.Say(set.out, "%s\n  %s", said,
				set.continueLine(order[i], l.id, "PROMPT")))
		}
		return err
	})
}

// continueLine returns the command that continues a session, whose id may be abbreviated.
func (set *settings) continueLine(one sessionstore.Session, id, prompt string) string {
	agent, command := set.agentOfSession(one.Agent)
	words := []string{"acp-agent", "run"}
	if set.configPath != "" {
		words = append(words, "--config="+set.configPath)
	}
	where := set.given(func(name string) bool { return name == "state-dir" })
	words = slices.Concat(words, where, agent.flags(), []string{"--resume", id})
	line := text.ShellLine(words...) + " " + prompt
	if command != "" {
		line += " -- " + command
	}
	return terminal.OneLine(line)
}

// speakers are what people call the roles.
var speakers = map[sessionstore.Role]string{sessionstore.RoleUser: "You",
	sessionstore.RoleThought: "Thought", sessionstore.RoleTool: "Tool",
	sessionstore.RoleAgent: "Agent"}

// marked returns the line that was found, with its matches marked on a terminal.
func marked(out io.Writer, one sessionstore.Found) string {
	style := terminal.Style{}
	if terminal.Width(out) > 0 && os.Getenv("NO_COLOR") == "" && terminal.ObeysEscapes() {
		style = terminal.Style{terminal.Bold, terminal.Cyan}
	}
	said, end := "", 0
	for _, m := range one.Matches {
		said += terminal.OneLine(one.Line[end:m.Start]) +
			style.Apply(terminal.OneLine(one.Line[m.Start:m.End]))
		end = m.End
	}
	return said + terminal.OneLine(one.Line[end:])
}

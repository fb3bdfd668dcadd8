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
	"github.com/acp-agent/acp-agent/internal/text/usage"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// searchFlags are the flags of sessions search.
type searchFlags struct {
	limit int
	json  bool
}

func newSessionsSearch(s streams, set *settings) *cobra.Command {
	f := searchFlags{limit: 20}
	cmd := &cobra.Command{
		Use:   "search TEXT...",
		Short: "Find conversations by what was said in them",
		Args: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(strings.Join(args, "")) == "" {
				return usage.Errorf("%s needs the TEXT to look for", words(cmd))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			q := sessionstore.SearchQuery{Text: strings.Join(args, " "), Limit: f.limit}
			if len(q.Terms()) == 0 {
				return usage.Errorf("there is no word in TEXT to look for")
			}
			return set.withStore(s.err, func(store sessionstore.Store) error {
				found, err := search(cmd.Context(), s.err, store, q)
				if err != nil {
					return err
				}
				return f.show(s, set, found)
			})
		},
	}
	set.acceptStore(cmd)
	cmd.Flags().Var(intValue{&f.limit, 1}, "limit", "show up to `N` messages, at most 1000")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object per message")
	return cmd
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

func (f searchFlags) show(s streams, set *settings, found []sessionstore.Found) error {
	if len(found) == 0 {
		s.note("nothing found")
	}
	if f.json {
		for _, one := range found {
			err := writeJSON(s.out, foundReport{
				Session: sessions.NewReport(one.Session), Role: one.Role, Time: one.Time, Line: one.Line,
				Matches: one.Matches, Continue: set.continueLine(one.Session, string(one.Session.ID), "PROMPT"),
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	out := foundPrinter{out: s.out, terminal: terminal.Width(s.out) > 0, now: time.Now(), id: math.MaxInt}
	out.color = out.terminal && os.Getenv("NO_COLOR") == "" && terminal.ObeysEscapes()
	var sessions []sessionstore.Session
	messages := make(map[sessionstore.ID][]sessionstore.Found)
	for _, one := range found {
		if messages[one.Session.ID] == nil {
			sessions = append(sessions, one.Session)
		}
		messages[one.Session.ID] = append(messages[one.Session.ID], one)
	}
	if out.terminal {
		out.id = uniqueLength(sessions)
	}
	for i, session := range sessions {
		if i > 0 {
			out.line("")
		}
		out.session(session)
		for _, one := range messages[session.ID] {
			out.line("  " + speaker(one.Role) + ": " + out.marked(one))
		}
		out.line("  " + set.continueLine(session, text.Prefix(string(session.ID), out.id), "PROMPT"))
	}
	return out.err
}

// continueLine returns the command that continues a session, whose id may be abbreviated.
func (set *settings) continueLine(one sessionstore.Session, id, prompt string) string {
	flags, command := set.agentArguments(one.Agent)
	words := []string{"acp-agent", "run"}
	for _, word := range slices.Concat(set.here("state-dir"), flags) {
		words = append(words, text.ShellWord(word))
	}
	words = append(words, "--resume", text.ShellWord(id), prompt)
	if command != "" {
		words = append(words, "--", command)
	}
	return terminal.OneLine(strings.Join(words, " "))
}

// foundPrinter prints what was found. It keeps the first error.
type foundPrinter struct {
	out             io.Writer
	terminal, color bool
	id              int // the length to which ids are abbreviated
	now             time.Time
	err             error
}

func (p *foundPrinter) line(line string) {
	if p.err == nil {
		p.err = terminal.Say(p.out, "%s", line)
	}
}

func (p *foundPrinter) session(one sessionstore.Session) {
	r := sessions.NewReport(one)
	when, name := r.UpdatedAt.Format(time.DateTime), workspace.Dir.String
	if p.terminal {
		when, name = terminal.Since(one.Updated, p.now), fromHome
	}
	p.line(fmt.Sprintf("%s  %s  %s  %s", text.Prefix(string(r.ID), p.id), when, text.Printable(r.Agent),
		folders(one.Keys.Roots.All(), name)))
	p.line("  " + cmp.Or(sessions.ListedTitle(one), "-"))
}

// speaker returns how people call a role.
func speaker(r sessionstore.Role) string {
	switch r {
	case sessionstore.RoleUser:
		return "You"
	case sessionstore.RoleThought:
		return "Thought"
	case sessionstore.RoleTool:
		return "Tool"
	}
	return "Agent"
}

// marked returns the line that was found, with its matches marked.
func (p *foundPrinter) marked(one sessionstore.Found) string {
	var b strings.Builder
	end := 0
	for _, m := range one.Matches {
		b.WriteString(terminal.OneLine(one.Line[end:m.Start]))
		match := terminal.OneLine(one.Line[m.Start:m.End])
		if p.color {
			match = terminal.Style{terminal.Bold, terminal.Cyan}.Apply(match)
		}
		b.WriteString(match)
		end = m.End
	}
	b.WriteString(terminal.OneLine(one.Line[end:]))
	return b.String()
}

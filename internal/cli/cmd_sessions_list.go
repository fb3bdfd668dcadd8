package cli

import (
	"cmp"
	"context"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

type listFlags struct {
	cwd      string
	dirs     []string
	archived bool
	limit    int // 0 for no limit
}

func newSessionsList(set *settings) *cobra.Command {
	l := listFlags{limit: 50}
	return set.newCommand("list", noArgs, needsStore, flags{"cwd": &l.cwd, "dir": &l.dirs,
		"archived": &l.archived, "limit": intValue{&l.limit, 0},
		"user": &set.user, "json": &set.json},
		func(cmd *cobra.Command, _ []string) error {
			q, err := l.query()
			if err != nil {
				return err
			}
			if set.json && !cmd.Flags().Changed("limit") {
				l.limit = 0 // for programs
			}
			return set.withStore(func(store sessionstore.Store) error {
				return listSessions(cmd.Context(), set, store, q, l.limit)
			})
		})
}

func (l listFlags) query() (sessionstore.Query, error) {
	q := sessionstore.Query{Archive: sessionstore.WithoutArchived}
	if l.archived {
		q.Archive = sessionstore.OnlyArchived
	}
	if l.cwd != "" {
		dirs, err := usage.Absolute(l.cwd)
		if err != nil {
			return q, err
		}
		q.Cwd = sessionstore.FilterDir(dirs.At(0))
	}
	if len(l.dirs) == 0 {
		return q, nil
	}
	dirs, err := usage.Absolute(l.dirs...)
	if err != nil {
		return q, err
	}
	if q.Cwd != nil {
		dirs = dirs.Without(q.Cwd.Spelling)
	}
	q.Additional = sessionstore.FilterDirs(dirs)
	return q, nil
}

// listSessions prints the sessions that q selects, at most limit, or all if that is 0.
func listSessions(
	ctx context.Context, set *settings, store sessionstore.Sessions, q sessionstore.Query,
	limit int,
) error {
	var found []sessionstore.Session
	var reports []sessions.Report
	more := false
	for session, err := range sessions.All(ctx, store, q) {
		if err != nil {
			return err
		}
		if more = limit > 0 && len(found) == limit; more {
			break
		}
		found, reports = append(found, session), append(reports, sessions.NewReport(session))
	}
	err := printLines(set, reports, func() error { return printSessions(set.out, found) })
	switch {
	case err != nil:
		return err
	case len(found) == 0 && (q.Cwd != nil || q.Additional != nil):
		set.note("no session has these folders; acp-agent sessions list, without --cwd and " +
			"--dir, shows all")
	case len(found) == 0:
		set.note("no such sessions; acp-agent run starts one, and --user NAME lists those of a " +
			"user of acp-agent serve")
	case more && !set.json:
		set.note("there are more sessions; list all with --limit 0, or find one with acp-agent " +
			"sessions search or --cwd DIR")
	}
	return nil
}

func printSessions(out io.Writer, found []sessionstore.Session) error {
	if len(found) == 0 {
		return nil
	}
	table := terminal.NewTable(out, "SESSION", "UPDATED", "TITLE", "AGENT", "FOLDERS")
	table.OneLine = true
	for _, l := range listings(out, found) {
		table.Row(l.id, l.updated, l.title, l.agent, l.folders)
	}
	return table.Print()
}

// A listing is what lists show of a session.
type listing struct{ id, updated, title, agent, folders string }

// listings describes sessions for a list, shortened for people at a terminal.
func listings(out io.Writer, found []sessionstore.Session) (all []listing) {
	people, length, now := terminal.Width(out) > 0, uniqueLength(found), time.Now()
	for _, one := range found {
		l := listing{string(one.ID), one.Updated.UTC().Format(time.RFC3339),
			cmp.Or(sessions.TitleLine(one), "-"), conversation.AgentName(one.Agent),
			folders(one.Keys.Roots.All(), people)}
		if people {
			l.id, l.updated = text.Prefix(l.id, length), terminal.Since(one.Updated, now)
		}
		all = append(all, l)
	}
	return all
}

// uniqueLength returns how long the beginnings of ids must be to differ from each other.
func uniqueLength(sessions []sessionstore.Session) int {
	const shortest = 12
	for length := shortest; ; length++ {
		seen, longer := make(map[string]bool), false
		for _, s := range sessions {
			seen[text.Prefix(string(s.ID), length)] = true
			longer = longer || len(s.ID) > length
		}
		if len(seen) == len(sessions) || !longer {
			return length
		}
	}
}

// fromHome returns a path with "~" for the home directory.
func fromHome(path string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(home, path); err == nil && filepath.IsLocal(rel) {
		return filepath.Join("~", rel)
	}
	return path
}

// folders returns directories on one line, quoting those with spaces. The short ones begin with
// "~" in the home directory.
func folders(dirs iter.Seq2[int, workspace.Dir], short bool) string {
	var names []string
	for _, d := range dirs {
		name := d.String()
		if short {
			name = fromHome(name)
		}
		name = text.Printable(name)
		if strings.Contains(name, " ") && !strings.HasPrefix(name, `"`) {
			name = strconv.Quote(name)
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

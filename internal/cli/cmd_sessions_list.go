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

	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/usage"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// listFlags are the flags of sessions list.
type listFlags struct {
	cwd      string
	dirs     []string
	archived bool
	limit    int // 0 for no limit
	json     bool
}

// defaultLimit is the number of sessions that a table has without --limit.
const defaultLimit = 50

func newSessionsList(s streams, set *settings) *cobra.Command {
	l := listFlags{limit: defaultLimit}
	cmd := &cobra.Command{
		Use:   "list [--cwd DIR] [--dir DIR]...",
		Short: "List stored sessions, newest activity first",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := l.query()
			if err != nil {
				return err
			}
			if l.json && !cmd.Flags().Changed("limit") {
				l.limit = 0 // for programs
			}
			return set.withStore(s.err, func(store sessionstore.Store) error {
				return l.list(cmd.Context(), s, store, q)
			})
		},
	}
	set.acceptStore(cmd)
	cmd.Flags().StringVar(&l.cwd, "cwd", "", "only sessions with this working directory `DIR`")
	cmd.Flags().Var((*listValue)(&l.dirs), "dir",
		"only sessions with the additional folder `DIR`; repeat it for the complete list")
	cmd.Flags().BoolVar(&l.archived, "archived", false, "only sessions that were archived")
	cmd.Flags().Var(intValue{&l.limit, 0}, "limit",
		"only the `N` newest sessions, or all with 0")
	cmd.Flags().BoolVar(&l.json, "json", false, "print one JSON object per line")
	return cmd
}

// query returns the query for the flags.
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

// list prints the sessions that q selects.
func (l listFlags) list(
	ctx context.Context, s streams, store sessionstore.Sessions, q sessionstore.Query,
) error {
	var (
		found []sessionstore.Session
		more  bool
	)
	for session, err := range sessions.All(ctx, store, q) {
		if err != nil {
			return err
		}
		if more = l.limit > 0 && len(found) == l.limit; more {
			break
		}
		found = append(found, session)
	}
	if l.json {
		for _, session := range found {
			if err := writeJSON(s.out, sessions.NewReport(session)); err != nil {
				return err
			}
		}
	} else if len(found) > 0 {
		if err := tableOf(s.out, found).Print(); err != nil {
			return err
		}
	}
	switch {
	case len(found) == 0:
		s.note("no such sessions; acp-agent run begins one, and --user NAME lists those of a " +
			"user of acp-agent serve")
	case more && !l.json:
		s.note("there are more sessions; list all with --limit 0, or find one with acp-agent " +
			"sessions search or --cwd DIR")
	}
	return nil
}

// tableOf returns a table of sessions. On a terminal it is for people.
func tableOf(out io.Writer, found []sessionstore.Session) *terminal.Table {
	if terminal.Width(out) == 0 {
		table := terminal.NewTable(out, "SESSION", "UPDATED (UTC)", "AGENT", "FOLDERS", "TITLE")
		for _, session := range found {
			r := sessions.NewReport(session)
			table.Row(r.ID, r.UpdatedAt.Format(time.DateTime), text.Printable(r.Agent),
				folders(session.Keys.Roots.All(), workspace.Dir.String),
				sessions.ListedTitle(session))
		}
		return table
	}
	table := terminal.NewTable(out, "SESSION", "UPDATED", "TITLE", "AGENT", "FOLDERS")
	table.OneLine = true
	id, now := uniqueLength(found), time.Now()
	for _, session := range found {
		table.Row(text.Prefix(string(session.ID), id), terminal.Since(session.Updated, now),
			cmp.Or(sessions.ListedTitle(session), "-"),
			text.Printable(sessions.NewReport(session).Agent),
			folders(session.Keys.Roots.All(), fromHome))
	}
	return table
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
func fromHome(d workspace.Dir) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return d.String()
	}
	rel, err := filepath.Rel(home, d.String())
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return d.String()
	}
	return filepath.Join("~", rel)
}

// folders returns directories on one line, as name spells them, quoting those with spaces.
func folders(dirs iter.Seq2[int, workspace.Dir], name func(workspace.Dir) string) string {
	var names []string
	for _, d := range dirs {
		name := text.Printable(name(d))
		if strings.Contains(name, " ") && !strings.HasPrefix(name, `"`) {
			name = strconv.Quote(name)
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

package cli

import (
	"cmp"
	"context"
	"fmt"
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
	width := terminal.Width(s.out)
	switch {
	case l.json:
		for _, session := range found {
			if err := writeJSON(s.out, sessions.NewReport(session)); err != nil {
				return err
			}
		}
	case width > 0:
		if err := printFitting(s.out, found, width, time.Now()); err != nil {
			return err
		}
	default:
		table := terminal.NewTable(s.out, "SESSION", "UPDATED (UTC)", "AGENT", "FOLDERS", "TITLE")
		for _, session := range found {
			r := sessions.NewReport(session)
			table.Row(r.ID, r.UpdatedAt.Format(time.DateTime),
				text.Printable(r.Agent), folders(session.Keys.Roots.All(), workspace.Dir.String),
				sessions.ListedTitle(session))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	switch {
	case len(found) == 0:
		fmt.Fprintln(s.err, "acp-agent: no such sessions")
	case more && !l.json:
		fmt.Fprintln(s.err, "acp-agent: there are more sessions; list all with --limit 0, or find "+
			"one with acp-agent sessions search or --cwd DIR")
	}
	return nil
}

// printFitting prints a table of sessions whose lines have at most width columns.
func printFitting(
	out io.Writer, found []sessionstore.Session, width int, now time.Time,
) error {
	rows := [][]string{{"SESSION", "UPDATED", "TITLE", "AGENT", "FOLDERS"}}
	id := uniqueLength(found)
	for _, session := range found {
		rows = append(rows, []string{
			text.Prefix(string(session.ID), id), terminal.Since(session.Updated, now),
			cmp.Or(sessions.ListedTitle(session), "-"),
			text.Printable(sessions.NewReport(session).Agent), folders(session.Keys.Roots.All(), fromHome),
		})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], terminal.Columns(cell))
		}
	}
	const gap, title, agent, dirs = 2, 2, 3, 4
	widths[agent] = min(widths[agent], 14)
	left := width - 1 - widths[0] - widths[1] - widths[agent] - 4*gap
	// The title gets what the folders do not need, and at least half.
	widths[title] = min(widths[title], max(left-widths[dirs], left/2, 10))
	widths[dirs] = max(left-widths[title], 10)
	for _, row := range rows {
		for _, column := range []int{title, agent, dirs} {
			row[column] = terminal.Cut(row[column], widths[column])
		}
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-terminal.Columns(cell)+gap))
			}
		}
		if _, err := fmt.Fprintln(out, terminal.Cut(line.String(), width-1)); err != nil {
			return err
		}
	}
	return nil
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

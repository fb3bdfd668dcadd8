package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
)

// newSessions looks after the stored sessions.
func newSessions(s streams, f *serveFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List, show, delete and clean up stored sessions",
		Args:  subcommandArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSessionsList(s, f), newSessionsShow(s, f), newSessionsDelete(s, f), newSessionsPrune(s, f), newSessionsRepair(s, f))
	return heeding(cmd, "state-dir")
}

// withStore runs do on the store.
func (f serveFlags) withStore(do func(sessionstore.Store) error) error {
	dir, err := f.state()
	if err != nil {
		return err
	}
	store := stored(dir)
	err = do(store)
	if closeErr := store.Close(); err == nil {
		err = closeErr
	}
	var unknown *sessionstore.NotFoundError
	if errors.As(err, &unknown) {
		return fmt.Errorf("%w in %s: acp-agent sessions list shows those that are there", err, dir)
	}
	return err
}

// stored is the store in dir. Where there is none an empty one stands for it: to look for sessions makes no file.
func stored(dir string) sessionstore.Store {
	if _, err := os.Stat(filepath.Join(dir, "sessions.db")); errors.Is(err, fs.ErrNotExist) {
		return sessionstore.NewMemory()
	}
	return sqlite.New(sqlite.Options{Dir: dir})
}

// sessionReport is a session as these commands show it.
type sessionReport struct {
	ID                    sessionstore.ID `json:"sessionId"`
	Agent                 string          `json:"agent"`
	Cwd                   workspace.Dir   `json:"cwd"`
	AdditionalDirectories workspace.Dirs  `json:"additionalDirectories"`
	Title                 string          `json:"title,omitempty"`
	CreatedAt             time.Time       `json:"createdAt"`
	UpdatedAt             time.Time       `json:"updatedAt"`
	Turns                 int64           `json:"turns"`
	// Directories says how an agent behind us is given the folders.
	Directories string `json:"directories,omitempty"`
}

func report(s sessionstore.Session) sessionReport {
	agent := s.Agent.Kind
	if s.Agent.Profile != "" {
		agent += " " + s.Agent.Profile
	}
	directories := ""
	if s.Agent.Kind == proxy.Kind {
		directories = proxy.Describe(s.State)
	}
	return sessionReport{
		Directories: directories,
		ID:          s.ID, Agent: agent, Cwd: s.Keys.Roots.Cwd(), AdditionalDirectories: s.Keys.Roots.Additional(),
		Title: s.Title, CreatedAt: s.Created.UTC(), UpdatedAt: s.Updated.UTC(), Turns: s.Turns,
	}
}

// listFlags are the filters of session/list.
type listFlags struct {
	cwd  string
	dirs []string
	none bool
	json bool
}

func newSessionsList(s streams, f *serveFlags) *cobra.Command {
	var l listFlags
	cmd := &cobra.Command{
		Use:     "list [--cwd DIR] [--dir DIR]... [--no-dirs]",
		Short:   "List stored sessions, newest activity first",
		Long:    "list shows the sessions of every agent, with the filters of session/list: --dir given several times matches exactly that list, in that order.",
		Example: "  acp-agent sessions list --cwd app --dir shared --dir skills",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := onlyOne(cmd, "dir", "no-dirs"); err != nil {
				return err
			}
			q, err := l.query()
			if err != nil {
				return err
			}
			return f.withStore(func(store sessionstore.Store) error { return listSessions(cmd.Context(), s, store, q, l) })
		},
	}
	cmd.Flags().StringVar(&l.cwd, "cwd", "", "only sessions with this working directory `DIR`")
	cmd.Flags().StringArrayVar(&l.dirs, "dir", nil, "only sessions with exactly these additional folders `DIR`, in order; repeat for more")
	cmd.Flags().BoolVar(&l.none, "no-dirs", false, "only sessions without additional folders")
	cmd.Flags().BoolVar(&l.json, "json", false, "print one JSON object a line")
	return cmd
}

// query makes the filters of the flags.
func (l listFlags) query() (sessionstore.Query, error) {
	q := sessionstore.Query{Limit: sessionstore.MaxPageSize}
	if l.cwd != "" {
		dirs, err := absolute(l.cwd)
		if err != nil {
			return q, err
		}
		q.Cwd = sessionstore.FilterDir(dirs.At(0))
	}
	if len(l.dirs) == 0 && !l.none {
		return q, nil
	}
	dirs, err := absolute(l.dirs...)
	if err != nil {
		return q, err
	}
	if q.Cwd != nil {
		dirs = dirs.Without(q.Cwd.Spelling)
	}
	q.Additional = sessionstore.FilterDirs(dirs)
	return q, nil
}

// absolute reads a shell's paths, which start where the shell is.
func absolute(paths ...string) (workspace.Dirs, error) {
	full, err := absolutePaths(paths...)
	if err != nil {
		return workspace.Dirs{}, err
	}
	return workspace.ParseDirs(full)
}

// absolutePaths makes a shell's paths absolute. It keeps ".." as it is: behind a link it means another
// directory than the text does.
func absolutePaths(paths ...string) ([]string, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	full := make([]string, len(paths))
	for i, path := range paths {
		switch {
		case path == "":
			return nil, usagef("a folder's name is empty: give a directory")
		case filepath.IsAbs(path):
			full[i] = path
		case filepath.VolumeName(path) != "" || runtime.GOOS == "windows":
			if full[i], err = filepath.Abs(path); err != nil {
				return nil, err
			}
		default:
			full[i] = here + string(filepath.Separator) + path
		}
	}
	return full, nil
}

func listSessions(ctx context.Context, s streams, store sessionstore.Store, q sessionstore.Query, l listFlags) error {
	encoder := json.NewEncoder(s.out)
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	if !l.json {
		fmt.Fprintln(table, "SESSION\tUPDATED (UTC)\tAGENT\tFOLDERS\tTITLE")
	}
	for none := true; ; none = false {
		page, err := store.List(ctx, q)
		if err != nil {
			return err
		}
		for _, stored := range page.Sessions {
			r := report(stored)
			if l.json {
				err = encoder.Encode(r)
			} else {
				_, err = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.ID, r.UpdatedAt.Format(time.DateTime), r.Agent, folders(stored.Keys.Roots), harmless(r.Title))
			}
			if err != nil {
				return err
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			if none && len(page.Sessions) == 0 {
				fmt.Fprintln(s.err, "acp-agent: there are no such sessions")
			}
			return table.Flush()
		}
	}
}

// folders are a session's roots on one line; a name with blanks is quoted.
func folders(roots workspace.Roots) string {
	var names []string
	for _, d := range roots.All() {
		name := printable(d.String())
		if strings.Contains(name, " ") && !strings.HasPrefix(name, `"`) {
			name = strconv.Quote(name)
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func newSessionsDelete(s streams, f *serveFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "delete SESSION...",
		Short: "Remove sessions for good",
		Long:  "delete removes sessions and their histories; their text is gone from the file. A session that is open in an editor ends there with an error.",
		Args:  sessionArgs(math.MaxInt),

		ValidArgsFunction: f.completeSessions,
		RunE: func(cmd *cobra.Command, ids []string) error {
			return f.withStore(func(store sessionstore.Store) error {
				for _, id := range ids {
					if _, err := store.Get(cmd.Context(), sessionstore.ID(id)); err != nil {
						return err
					}
					if err := store.Delete(cmd.Context(), sessionstore.ID(id)); err != nil {
						return err
					}
					fmt.Fprintln(s.out, "deleted", id)
				}
				return nil
			})
		},
	}
}

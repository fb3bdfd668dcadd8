package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/cli/registry"
	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/serve"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/postgres"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// storeVariable has the address of the store, perhaps with a password.
const storeVariable = "ACP_AGENT_STORE"

// storeSettings say where the program keeps sessions, and what else belongs to them.
type storeSettings struct {
	stateDir string
	store    string
	user     string       // --user of sessions
	log      *slog.Logger // gets what a command's store has to say, nil for nothing
}

// dir returns the absolute path of the state directory or, with names, of what has them in it. It
// returns "" if there is no state directory.
func (s *storeSettings) dir(names ...string) string {
	dir, err := s.stateDirectory()
	if err != nil {
		return ""
	}
	return filepath.Join(append([]string{dir}, names...)...)
}

// stateDirectory returns the absolute path of the state directory, or why there is none.
func (s *storeSettings) stateDirectory() (string, error) {
	if s.stateDir != "" {
		return filepath.Abs(s.stateDir)
	}
	dir, err := defaultStateDir()
	if err != nil {
		return "", fmt.Errorf("there is no state directory: %w; set it, or use --state-dir DIR", err)
	}
	return dir, nil
}

// defaultStateDir follows the conventions of the platform.
func defaultStateDir() (string, error) {
	switch runtime.GOOS {
	case "windows":
		if dir := os.Getenv("LocalAppData"); dir != "" {
			return filepath.Join(dir, "acp-agent"), nil
		}
		return "", errors.New("%LocalAppData% is not set")
	case "darwin":
		home, err := os.UserHomeDir()
		return filepath.Join(home, "Library", "Application Support", "acp-agent"), err
	default:
		if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
			return filepath.Join(dir, "acp-agent"), nil
		}
		home, err := os.UserHomeDir()
		return filepath.Join(home, ".local", "state", "acp-agent"), err
	}
}

// storeVariables returns the names of the environment variables with which the session store can be
// opened. Agents and MCP servers do not get them.
func (s *storeSettings) storeVariables() []string {
	if s.store == "" {
		return nil
	}
	return []string{storeVariable, "PGPASSWORD", "PGSSLPASSWORD"}
}

// withheld returns the names of the environment variables that MCP servers do not get.
func (set *settings) withheld() []string {
	return append(set.config.KeyVariables(), set.storeVariables()...)
}

// serverStore returns the session store for serving an editor. It fails if sessions cannot be
// written there, as far as that can be determined without opening it.
func (s *storeSettings) serverStore(logger *slog.Logger) (sessionstore.Shared, error) {
	store, _, err := s.openStore(logger, sessionstore.Retention)
	if file, ok := store.(*sqlite.Store); ok {
		err = file.CheckDir()
	}
	return store, err
}

func isPostgres(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// namedStore returns the store with this name from the command line, "" for the configured one, and
// a name by which stores can be compared.
func (s *storeSettings) namedStore(name string) (sessionstore.Shared, string, error) {
	named := *s
	scheme, _, isAddress := strings.Cut(name, ":/")
	switch {
	case isPostgres(name):
		named.store = name
	case isAddress && len(scheme) > 1: // a directory with this name would have the password in it
		return nil, "", usage.Errorf("a store is a directory or the address of a PostgreSQL " +
			"database, such as postgres://USER@HOST/DATABASE")
	case name != "":
		if filepath.Base(name) == "sessions.db" {
			name = filepath.Dir(name)
		}
		named.store, named.stateDir = "", name
	}
	return named.openStore(s.log, 0)
}

// openStore returns the configured session store, and its name. After the retention the store
// deletes sessions that were never prompted, never if it is 0.
func (s *storeSettings) openStore(
	logger *slog.Logger, retention time.Duration,
) (sessionstore.Shared, string, error) {
	if s.store == "" {
		dir, err := s.stateDirectory()
		if err != nil {
			return nil, "", err
		}
		return sqlite.New(sqlite.Options{Dir: dir, Logger: logger, Retention: retention}), dir, nil
	}
	if !isPostgres(s.store) {
		return nil, "", usage.Errorf("the store (--store, %s or the key store) must be the "+
			"address of a PostgreSQL database, such as postgres://USER@HOST/DATABASE; without "+
			"one, sessions are in a file", storeVariable)
	}
	store, err := postgres.New(postgres.Options{Address: s.store, Retention: retention})
	if err != nil {
		return nil, "", usage.Errorf("--store: %v", err)
	}
	return store, store.String(), nil
}

// withStore calls do with the session store of a command. If the store does not exist, do gets an
// empty one in memory, so that looking for sessions creates no file.
func (s *storeSettings) withStore(do func(sessionstore.Store) error) error {
	store, name, err := s.openStore(s.log, 0)
	if err == nil && s.store == "" && !sqlite.Exists(name) {
		store, err = sqlite.NewMemory(), store.Close()
	}
	if err != nil {
		return err
	}
	owned := sessionstore.Store(store)
	if s.user != "" {
		if owned, err = ownedBy(s.user, store); err != nil {
			return errors.Join(err, store.Close())
		}
	}
	err = cmp.Or(do(owned), store.Close())
	if errors.As(err, new(*sessionstore.NotFoundError)) {
		return fmt.Errorf("%w in %s; acp-agent sessions list shows the sessions", err, name)
	}
	return err
}

// ownedBy returns the store of a user who has or had sessions.
func ownedBy(user string, store sessionstore.Shared) (sessionstore.Store, error) {
	owners, err := store.Owners(context.Background())
	if err != nil {
		return nil, err
	}
	if !slices.Contains(owners, user) {
		return nil, fmt.Errorf("--user: %s has no sessions; acp-agent tokens list shows the users",
			text.Name(user))
	}
	return store.For(user), nil
}

// registry returns the agents of the registry, none if there is no list, and why others are left
// out.
func (s *storeSettings) registry() (registry.Registry, []error, error) {
	dir, err := s.stateDirectory()
	if err != nil {
		return nil, nil, err
	}
	return registry.Read(filepath.Join(dir, "registry.json"))
}

// consentName is the name of a directory with consents.
const consentName = "mcp-allowed"

// consents returns what the user has always allowed.
func (s *storeSettings) consents() *consent.Store { return consent.NewStore(s.dir(consentName)) }

// worktreeDirs returns the directory of what is known about worktrees, and that of worktrees: it is
// beside the state directory, in which no session may have a folder.
func (s *storeSettings) worktreeDirs() (records, trees string) {
	if records = s.dir("worktrees"); records != "" {
		trees = s.dir() + "-worktrees"
	}
	return records, trees
}

// worktrees returns the registry of worktrees.
func (s *storeSettings) worktrees() *worktree.Registry {
	return worktree.NewRegistry(s.worktreeDirs())
}

// snapshots returns what folders of sessions had before.
func (s *storeSettings) snapshots() worktree.Snapshots {
	return worktree.NewSnapshots(s.snapshotDir())
}

// snapshotDir returns the directory for snapshots of the sessions in the configured store.
func (s *storeSettings) snapshotDir() string {
	name := "sessions"
	if address, err := url.Parse(s.store); err == nil && s.store != "" {
		name = url.PathEscape(address.Host + address.Path)
	}
	return s.dir("snapshots", name)
}

// deleteSession deletes a session and its snapshots.
func (s *storeSettings) deleteSession(
	store sessionstore.Sessions, ctx context.Context, id sessionstore.ID,
) error {
	if err := store.Delete(ctx, id); err != nil {
		return err
	}
	return s.snapshots().Remove(string(id))
}

// accounts returns the users of acp-agent serve.
func (s *storeSettings) accounts() *serve.Accounts {
	return serve.NewAccounts(s.dir("tokens"))
}

// findSession returns the session with this name: its id, the beginning of its id, or "last".
func findSession(
	ctx context.Context, store sessionstore.Sessions, name string,
) (sessionstore.Session, error) {
	one, err := store.Get(ctx, sessionstore.ID(name))
	if !errors.As(err, new(*sessionstore.NotFoundError)) {
		return one, err
	}
	found, ok, failed := sessions.Named(sessions.All(ctx, store, sessionstore.Query{}),
		func(s sessionstore.Session) string { return string(s.ID) }, name)
	if !ok && failed == nil {
		return one, err
	}
	return found, failed
}

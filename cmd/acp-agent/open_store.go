package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// serverStore returns the session store for serving an editor. It fails if sessions cannot be
// written there, and otherwise opens no file yet.
func (set *settings) serverStore(logger *slog.Logger) (sessionstore.Shared, error) {
	o, err := set.storeOptions(logger)
	if err != nil {
		return nil, err
	}
	o.Retention = sessionstore.Retention
	store := sqlite.New(o)
	return store, store.CheckDir()
}

// withStore calls do with the session store of a command. If there is none, do gets an empty one,
// so that looking for sessions creates no file. Warnings about its files are written to stderr.
func (set *settings) withStore(stderr io.Writer, do func(sessionstore.Store) error) error {
	o, err := set.storeOptions(slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return err
	}
	var store sessionstore.Store = sqlite.NewMemory()
	if sqlite.Exists(o.Dir) {
		store = sqlite.New(o)
	}
	err = do(store)
	if closeErr := store.Close(); err == nil {
		err = closeErr
	}
	if errors.As(err, new(*sessionstore.NotFoundError)) {
		return fmt.Errorf("%w in %s; acp-agent sessions list shows the sessions", err, o.Dir)
	}
	return err
}

// withSessions calls do with each of the sessions that the arguments of cmd name, once all of them
// were found. A name is the id of a session, the beginning of its id, or "last".
func (set *settings) withSessions(
	cmd *cobra.Command, s streams, names []string,
	do func(context.Context, streams, sessionstore.Store, sessionstore.Session) error,
) error {
	return set.withStore(s.err, func(store sessionstore.Store) error {
		var found []sessionstore.Session
		for _, name := range names {
			one, err := findSession(cmd.Context(), store, name)
			if err != nil {
				return err
			}
			found = append(found, one)
		}
		for _, one := range found {
			if err := do(cmd.Context(), s, store, one); err != nil {
				return err
			}
		}
		return nil
	})
}

// findSession returns the session with this name (see withSessions).
func findSession(
	ctx context.Context, store sessionstore.Sessions, name string,
) (sessionstore.Session, error) {
	one, err := store.Get(ctx, sessionstore.ID(name))
	if !errors.As(err, new(*sessionstore.NotFoundError)) {
		return one, err
	}
	var matches []sessionstore.Session
	for session, err := range listed(ctx, store, sessionstore.Query{}) {
		switch {
		case err != nil:
			return session, err
		case name == lastSession:
			return session, nil
		case strings.HasPrefix(string(session.ID), name):
			matches = append(matches, session)
		}
	}
	switch len(matches) {
	case 0:
		return one, err
	case 1:
		return matches[0], nil
	}
	return one, ambiguous(name, len(matches))
}

// lastSession names the session with the newest activity.
const lastSession = "last"

func ambiguous(name string, n int) error {
	return usagef("%d session ids begin with %q: give more of the id", n, name)
}

// listed yields the sessions that q selects, those with the newest activity first. It stops after
// an error.
func listed(
	ctx context.Context, store sessionstore.Sessions, q sessionstore.Query,
) iter.Seq2[sessionstore.Session, error] {
	return func(yield func(sessionstore.Session, error) bool) {
		for q.Limit = sessionstore.MaxPageSize; ; {
			page, err := store.List(ctx, q)
			if err != nil {
				yield(sessionstore.Session{}, err)
				return
			}
			for _, session := range page.Sessions {
				if !yield(session, nil) {
					return
				}
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				return
			}
		}
	}
}

// repairStore repairs the session store. Its warnings are written to stderr.
func (set *settings) repairStore(ctx context.Context, stderr io.Writer) (sqlite.Report, error) {
	o, err := set.storeOptions(slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return sqlite.Report{}, err
	}
	return sqlite.Repair(ctx, o)
}

// storeOptions says where the session store is.
func (set *settings) storeOptions(logger *slog.Logger) (sqlite.Options, error) {
	dir, err := set.stateDirectory()
	profiles := sync.OnceValue(func() []proxy.Profile {
		profiles, _ := set.agents() // without a registry, its agents keep the names of their programs
		return profiles
	})
	renamed := func(stored sessionstore.Agent) sessionstore.Agent {
		return proxy.Renamed(profiles(), stored)
	}
	return sqlite.Options{Dir: dir, Logger: logger, Renamed: renamed}, err
}

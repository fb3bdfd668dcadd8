package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// serverStore returns the session store for serving an editor. It fails if sessions cannot be
// written there, and otherwise opens no file yet.
func (set *settings) serverStore(logger *slog.Logger) (sessionstore.Store, error) {
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
	return sqlite.Options{Dir: dir, Logger: logger}, err
}

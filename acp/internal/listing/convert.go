package listing

import (
	"context"
	"errors"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// convert converts a session of the backend for the store.
func (o Options) convert(
	ctx context.Context, own backend.ForeignSession, reals *realPaths,
) (sessionstore.Session, error) {
	n := sessionstore.Session{
		ID: sessionstore.NewID(), Agent: o.Owner(), State: own.State,
		Title: TitleLine(own.Title), Updated: own.Updated, Archived: own.Archived,
	}
	if strictjson.IsObject(own.Meta) && len(own.Meta) <= maxListedMeta {
		n.Meta = own.Meta
	}
	switch {
	case len(own.State) > backend.MaxState:
		return n, errors.New("its state is over the limit of 64 KiB")
	case own.Cwd.IsZero():
		return n, errors.New("it has no working directory")
	}
	n.StateKey = o.Foreign.Key(own.State)
	n.Keys = sessionstore.Keys{Roots: workspace.RootsFrom(own.Cwd, workspace.Dirs{}),
		Real: []workspace.Dir{reals.of(ctx, own.Cwd)}}
	return n, n.ValidateListed()
}

// realPaths caches real paths, because an agent's many sessions have few different roots.
type realPaths struct {
	tasks *tasks.Group
	known map[workspace.Dir]workspace.Dir
	left  time.Duration // for disks that do not answer
}

func (o Options) newRealPaths() *realPaths {
	return &realPaths{o.Tasks, make(map[workspace.Dir]workspace.Dir), o.Times.Wait}
}

// of returns the real path of dir, or dir itself if its disk does not answer.
func (r *realPaths) of(ctx context.Context, dir workspace.Dir) workspace.Dir {
	real, known := r.known[dir]
	if known {
		return real
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, r.left)
	defer cancel()
	real, err := tasks.FromDisk(ctx, r.tasks, func() (workspace.Dir, error) {
		return workspace.Real(dir), nil
	})
	if err != nil {
		real = dir
	}
	r.left -= time.Since(begun)
	r.known[dir] = real
	return real
}

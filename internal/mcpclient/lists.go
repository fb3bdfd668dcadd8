package mcpclient

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// listCache keeps a list until the server says that it has changed.
type listCache[T any] struct {
	fetching sync.Mutex   // held while the list is fetched
	version  atomic.Int64 // incremented by invalidate

	mu      sync.Mutex
	known   bool
	fetched int64 // the version of items
	items   []T
}

// invalidate has the list fetched again when it is next needed.
func (c *listCache[T]) invalidate() { c.version.Add(1) }

func (c *listCache[T]) cached() ([]T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.items, c.known && c.fetched == c.version.Load()
}

// get returns the list, from the cache if possible. Several callers share one fetch.
func (c *listCache[T]) get(ctx context.Context, fetch func(context.Context) ([]T, error)) ([]T, error) {
	if items, ok := c.cached(); ok {
		return items, nil
	}
	c.fetching.Lock()
	defer c.fetching.Unlock()
	if items, ok := c.cached(); ok {
		return items, nil
	}
	version := c.version.Load()
	items, err := fetch(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.fetched, c.items = true, version, items
	return items, nil
}

// collect returns the items that a server lists, up to the limits. Items without a name are left out.
func collect[T any](c *connection, kind string, listed iter.Seq2[*T, error], name func(*T) string) ([]*T, error) {
	var items []*T
	left := c.server.set.options.limits.MaxListBytes
	for item, err := range listed {
		if err != nil {
			return nil, err
		}
		if item == nil || name(item) == "" {
			continue
		}
		left -= len(encode(item))
		if left < 0 || len(items) == maxItems {
			c.server.log.Warn("MCP server lists more items than are used", "kind", kind, "used", len(items))
			break
		}
		items = append(items, item)
	}
	return items, nil
}

// fromEach asks all servers at once, waiting for those that start, and concatenates their items in the servers' order. If a
// server fails, its items are missing and the error is logged.
func fromEach[T any](ctx context.Context, s *Set, ask func(context.Context, *connection) ([]T, error)) ([]T, error) {
	servers, err := s.use()
	if err != nil {
		return nil, err
	}
	items := make([][]T, len(servers))
	errs := make([]error, len(servers))
	var asking sync.WaitGroup
	for i, one := range servers {
		asking.Go(func() { items[i], errs[i] = fromServer(ctx, one, ask) })
	}
	asking.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for i, err := range errs {
		switch {
		case isPermanent(err):
			servers[i].log.Debug("could not list what an MCP server offers", "error", err) // its failure has been logged
		case err != nil:
			servers[i].log.Warn("could not list what an MCP server offers", "error", err)
		}
	}
	return slices.Concat(items...), nil
}

// maxConnections is how many connections of one server are tried for one request.
const maxConnections = 3

// fromServer asks one server, and again if its connection had just ended.
func fromServer[T any](ctx context.Context, s *server, ask func(context.Context, *connection) ([]T, error)) ([]T, error) {
	var failure error
	for range maxConnections {
		c, err := s.ready(ctx)
		if err != nil {
			return nil, err
		}
		bounded, cancel := context.WithTimeoutCause(ctx, listTimeout, timeoutError(s.config.Name, "listed what it offers", listTimeout))
		items, err := ask(bounded, c)
		if err != nil && bounded.Err() != nil {
			err = context.Cause(bounded)
		}
		cancel()
		if err == nil {
			return items, nil
		}
		if failure = s.redactor.err(err); !isDisconnected(err) {
			break
		}
		c.calls.close()
	}
	return nil, failure
}

// maxNameLength bounds a server's and a tool's part of a full name, so that the name fits what models accept.
const maxNameLength = 64

// uniqueNames turns names into unique names of letters, digits, "_" and "-", in order. Where given is not "" it is kept as it
// is; given may be nil.
func uniqueNames(names, given []string) []string {
	out := make([]string, len(names))
	copy(out, given)
	taken := map[string]bool{}
	for _, name := range given {
		taken[name] = true
	}
	for i, name := range names {
		if out[i] == "" && plainName(name) == name && !taken[name] { // names that need no change come first
			out[i], taken[name] = name, true
		}
	}
	for i, name := range names {
		for n := 1; out[i] == ""; n++ {
			candidate := plainName(name)
			if n > 1 {
				suffix := "_" + strconv.Itoa(n)
				candidate = candidate[:min(len(candidate), maxNameLength-len(suffix))] + suffix
			}
			if !taken[candidate] {
				out[i], taken[candidate] = candidate, true
			}
		}
	}
	return out
}

func plainName(name string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		default:
			return '_'
		}
	}, name)
	if plain == "" {
		return "_"
	}
	return plain[:min(len(plain), maxNameLength)]
}

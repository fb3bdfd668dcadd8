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

// lists are what a connected server offers, as far as it was asked.
type lists struct {
	tools     cache[tool]
	prompts   cache[prompt]
	resources cache[resource]
}

// cache keeps a list until the server says that it has changed.
type cache[T any] struct {
	fetching sync.Mutex
	version  atomic.Int64 // raised by forget

	mu    sync.Mutex
	known bool
	at    int64 // the version that items are of
	items []T
}

// forget has the list fetched again when it is next needed.
func (c *cache[T]) forget() { c.version.Add(1) }

func (c *cache[T]) look() ([]T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.items, c.known && c.at == c.version.Load()
}

// get is the list. fetch is bounded by its context.
func (c *cache[T]) get(ctx context.Context, fetch func(context.Context) ([]T, error)) ([]T, error) {
	if items, ok := c.look(); ok {
		return items, nil
	}
	c.fetching.Lock()
	defer c.fetching.Unlock()
	if items, ok := c.look(); ok {
		return items, nil
	}
	version := c.version.Load()
	items, err := fetch(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.at, c.items = true, version, items
	return items, nil
}

// taken is the beginning of what a server lists, as far as there is room. What has no name is passed over.
func taken[T any](l *link, kind string, listed iter.Seq2[*T, error], name func(*T) string) ([]*T, error) {
	var items []*T
	room := l.server.set.options.MaxList
	for item, err := range listed {
		if err != nil {
			return nil, err
		}
		if item == nil || name(item) == "" {
			continue
		}
		room -= len(encode(item))
		if room < 0 || len(items) == l.server.set.options.MaxItems {
			l.server.log.Warn("an MCP server lists more than is taken", "kind", kind, "taken", len(items))
			break
		}
		items = append(items, item)
	}
	return items, nil
}

// each asks every server at once, after it is ready, and joins what they have in the servers' order. What a server
// cannot give is missing, and logged.
func each[T any](ctx context.Context, s *Set, ask func(context.Context, member, *link) ([]T, error)) ([]T, error) {
	members, err := s.all()
	if err != nil {
		return nil, err
	}
	var all []T
	found := make([][]T, len(members))
	failed := make([]error, len(members))
	var asking sync.WaitGroup
	for i, m := range members {
		asking.Go(func() { found[i], failed[i] = ofServer(ctx, m, ask) })
	}
	asking.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for i, m := range members {
		if failed[i] != nil {
			m.log.Warn("an MCP server's offers are missing", "error", failed[i])
		}
		all = append(all, found[i]...)
	}
	return all, nil
}

// ofServer asks one server, anew if its connection had just ended.
func ofServer[T any](ctx context.Context, m member, ask func(context.Context, member, *link) ([]T, error)) ([]T, error) {
	var failed error
	for range maxLinks {
		l, err := m.ready(ctx)
		if err != nil {
			return nil, err
		}
		items, err := within(ctx, m, l, ask)
		if err == nil {
			return items, nil
		}
		if failed = m.scrubber.err(err); !gone(err) {
			break
		}
		l.calls.end()
	}
	return nil, failed
}

// within asks a server that is ready, for a bounded time.
func within[T any](ctx context.Context, m member, l *link, ask func(context.Context, member, *link) ([]T, error)) ([]T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.set.options.ListTimeout,
		&LateError{Server: m.config.Name, What: "listed what it offers", Bound: m.set.options.ListTimeout})
	defer cancel()
	items, err := ask(ctx, m, l)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return items, err
}

// find is the server whose names begin with prefix, or that the client calls so.
func (s *Set) find(name string) (member, error) {
	members, err := s.all()
	if err != nil {
		return member{}, err
	}
	for _, m := range members {
		if m.prefix == name {
			return m, nil
		}
	}
	for _, m := range members {
		if m.config.Name == name {
			return m, nil
		}
	}
	return member{}, errNotFound
}

// longestName bounds a server's or a tool's part of a name in the catalogue, so that both and the dot fit what models
// take.
const longestName = 64

// distinct makes of names, in order, ones that differ and are of letters, digits, "_" and "-" only.
func distinct(names []string) []string { return distinctFrom(make([]string, len(names)), names) }

// distinctFrom is distinct where some of the names, those that are not "" in given, were made before.
func distinctFrom(given, names []string) []string {
	out := slices.Clone(given)
	taken := map[string]bool{}
	for _, name := range given {
		taken[name] = true
	}
	for i, name := range names {
		if plain := plainName(name); plain == name && out[i] == "" { // those that need no change keep their name
			if !taken[plain] {
				out[i], taken[plain] = plain, true
			}
		}
	}
	for i, name := range names {
		for n := 1; out[i] == ""; n++ {
			candidate := plainName(name)
			if n > 1 {
				suffix := "_" + strconv.Itoa(n)
				candidate = candidate[:min(len(candidate), longestName-len(suffix))] + suffix
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
	return plain[:min(len(plain), longestName)]
}

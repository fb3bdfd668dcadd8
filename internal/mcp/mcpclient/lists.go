package mcpclient

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/text"
)

// listCache keeps what a server lists of one kind until the server says that it has changed.
type listCache[T any] struct {
	kind  string      // in the plural
	fresh atomic.Bool // the items have not changed since they were fetched

	mu    sync.Mutex // held while the list is fetched
	items []T
	cut   bool // there are more, over the limits
}

// invalidate makes the next fetch ask the server again.
func (c *listCache[T]) invalidate() { c.fresh.Store(false) }

// fetchList returns the items that the server lists of one kind, from the cache if possible.
// Several callers share one fetch. Items without a name are left out. named returns an item with
// its name as it is unique in the list.
func fetchList[T, N any](
	s *server, cache *listCache[N], listed iter.Seq2[*T, error], name func(*T) string,
	named func(item *T, unique string) N,
) ([]N, error) {
	cache.mu.Lock()
	defer cache.mu.Unlock()
	if cache.fresh.Swap(true) { // it may change while it is fetched
		return cache.items, nil
	}
	all, cut, err := collect(s, cache.kind, listed, name)
	if err != nil {
		cache.invalidate()
		return nil, err
	}
	names := make([]string, len(all))
	for i, item := range all {
		names[i] = name(item)
	}
	items := make([]N, len(all))
	for i, unique := range uniqueNames(names, nil) {
		items[i] = named(all[i], unique)
	}
	cache.items, cache.cut = items, cut
	return items, nil
}

// collect returns the items that a server lists, up to the limits. Repeated ones are left out. A
// list ends when more of its items have been repeated than not: some servers ignore cursors.
func collect[T any](
	s *server, kind string, listed iter.Seq2[*T, error], name func(*T) string,
) (all []*T, cut bool, err error) {
	left, repeated := s.set.options.limits.MaxListBytes, 0
	known := map[string]bool{}
	for item, err := range listed {
		if err != nil {
			return nil, false, err
		}
		if item == nil || name(item) == "" {
			continue
		}
		encoded := string(encode(item))
		if known[encoded] {
			if repeated++; repeated > len(all) {
				s.log.Warn("MCP server lists the same items again and again",
					"kind", kind, "used", len(all))
				break
			}
			continue
		}
		known[encoded] = true
		left -= len(encoded)
		if left < 0 || len(all) == maxItems {
			s.log.Warn("MCP server lists more items than are used",
				"kind", kind, "used", len(all))
			return all, true, nil
		}
		all = append(all, item)
	}
	return all, false, nil
}

// latest returns the items that were fetched last, or nil while they are being fetched.
func (c *listCache[T]) latest() []T {
	if !c.mu.TryLock() {
		return nil
	}
	defer c.mu.Unlock()
	return c.items
}

// describeCut returns a sentence about what is left out of the list, or none.
func (c *listCache[T]) describeCut(l limits) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.cut {
		return nil
	}
	return []string{fmt.Sprintf("The server lists more %s than the first %d, which are used: a "+
		"list is limited to %d entries and %s", c.kind, len(c.items), maxItems,
		text.Size(l.MaxListBytes))}
}

// List sends what each server offers as soon as it is known, and then closes the channel. It starts
// the servers and waits for them until ctx ends, or for [Options].Wait. Nobody needs to receive.
func (s *Set) List(ctx context.Context) (<-chan acpmcp.Listing, error) {
	servers, err := s.use()
	if err != nil {
		return nil, err
	}
	listings := make(chan acpmcp.Listing, len(servers))
	spawned := s.spawn(func() {
		defer close(listings)
		var listing sync.WaitGroup
		for _, one := range servers {
			listing.Go(func() { listings <- one.list(ctx) })
		}
		listing.Wait()
	})
	if !spawned {
		return nil, acpmcp.ErrClosed
	}
	return listings, nil
}

// list returns what the server offers, after starting it if necessary.
func (s *server) list(ctx context.Context) acpmcp.Listing {
	list := func(ctx context.Context, c *connection) (l acpmcp.Listing, err error) {
		var listing sync.WaitGroup
		var resourcesErr, promptsErr error
		listing.Go(func() { l.Resources, resourcesErr = c.listResources(ctx) })
		listing.Go(func() { _, promptsErr = c.listPrompts(ctx) }) // for the status
		tools, err := c.listTools(ctx)
		for _, t := range tools {
			l.Tools = append(l.Tools, t.Tool)
		}
		listing.Wait()
		limits := s.set.options.limits
		l.Cut = slices.Concat(c.tools.describeCut(limits), c.resources.describeCut(limits),
			c.prompts.describeCut(limits))
		return l, cmp.Or(err, resourcesErr, promptsErr)
	}
	l, err := fromServer(ctx, s, list)
	l.Status = s.status()
	if err != nil {
		l.Err = err
		s.log.Debug("could not list what an MCP server offers", "error", err)
	}
	return l
}

// maxNameLength bounds the server's part and the tool's part of a full name, so that models accept
// the name.
const maxNameLength = 64

// uniqueNames turns names into unique names of letters, digits, "_" and "-", in order. Where given
// is not "" it is kept as it is; given may be nil.
func uniqueNames(names, given []string) []string {
	out := make([]string, len(names))
	copy(out, given)
	taken := map[string]bool{}
	for _, name := range given {
		taken[name] = true
	}
	plain := make([]string, len(names))
	for i, name := range names {
		plain[i] = text.Prefix(text.Identifier(name), maxNameLength)
		// Names that need no change come first.
		if out[i] == "" && plain[i] == name && !taken[name] {
			out[i], taken[name] = name, true
		}
	}
	for i, candidate := range plain {
		for n := 1; out[i] == ""; n++ {
			if n > 1 {
				suffix := "_" + strconv.Itoa(n)
				candidate = text.Prefix(plain[i], maxNameLength-len(suffix)) + suffix
			}
			if !taken[candidate] {
				out[i], taken[candidate] = candidate, true
			}
		}
	}
	return out
}

// listResources returns the server's resources.
func (c *connection) listResources(ctx context.Context) ([]acpmcp.Resource, error) {
	if c.offered().Resources == nil {
		return nil, nil
	}
	uri := func(r *mcp.Resource) string { return r.URI }
	described := func(r *mcp.Resource, _ string) acpmcp.Resource {
		return acpmcp.Resource{URI: r.URI, Description: r.Description}
	}
	return fetchList(c.server, &c.resources, c.session.Resources(ctx, nil), uri, described)
}

// ReadResource returns the content of a resource of the server with this prefix, otherwise with
// this name. The error is a [*acpmcp.UnknownNameError] if such a server does not exist.
func (s *Set) ReadResource(ctx context.Context, server, uri string) (
	*mcp.ReadResourceResult, error) {
	one, err := s.find(server, &acpmcp.UnknownNameError{Kind: "server named", Name: server})
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context, c *connection) (*mcp.ReadResourceResult, error) {
		return c.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	}
	return fromServer(ctx, one, read)
}

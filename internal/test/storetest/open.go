package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// OpenOwners returns an [Open] for stores that take long to open. Its stores are parts of two,
// which open returns and which are closed with t: they have owners with names of their own.
func OpenOwners(t *testing.T, open func(t *testing.T) sessionstore.Shared) Open {
	var stores [2]sessionstore.Shared
	n := 0
	return func(*testing.T) sessionstore.Shared {
		n++
		all := &stores[n%2] // two calls in sequence return parts of different stores
		if *all == nil {
			*all = open(t)
		}
		name := fmt.Sprintf("test %d ", n)
		return tenant{(*all).For(name), *all, name, func() { *all = nil }}
	}
}

// tenant is the part of a store that belongs to the owners whose names begin with name.
type tenant struct {
	sessionstore.Store
	all    sessionstore.Shared
	name   string
	closed func()
}

func (s tenant) For(owner string) sessionstore.Store { return s.all.For(s.name + owner) }

func (s tenant) Owners(ctx context.Context) (owners []string, err error) {
	all, err := s.all.Owners(ctx)
	for _, owner := range all {
		if owner, ok := strings.CutPrefix(owner, s.name); ok {
			owners = append(owners, owner)
		}
	}
	return owners, err
}

func (s tenant) Ping(ctx context.Context) error { return s.all.Ping(ctx) }

// Close closes the whole store, of which no further part is returned.
func (s tenant) Close() error {
	s.closed()
	return s.all.Close()
}

// Package storetest tests that stores keep what [sessionstore.Store] promises. Further tests of a
// store can fill it with [Create], [Begin] and [Said].
//
// It must only be imported by tests.
//
// The names of subtests begin with the clauses of the program's specification that they prove. The
// tests do not depend on the clock: a store whose clock does not advance passes too.
package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Open returns a new, empty store that shares nothing with others. It is called for each subtest,
// and must close the store in the subtest's cleanup.
type Open = func(t *testing.T) sessionstore.Shared

// Test tests the stores that open returns.
func Test(t *testing.T, open Open) {
	for _, group := range [][]testCase{
		lifecycleTests(), turnTests(), historyTests(), draftTests(), importTests(),
		restoreTests(), forkTests(), listTests(), labelTests(), pruneTests(), textTests(),
		searchTests(), ledgerTests(), modelTests(),
	} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				s := open(t)
				n := newNeighbour(t, s)
				defer n.requireUnchanged(t)
				c.run(t, s)
			})
		}
	}
	for _, c := range ownerTests() {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
	t.Run("calls after Close fail", func(t *testing.T) { closed(t, open(t)) })
	t.Run("P7/a draft belongs to its store", func(t *testing.T) {
		draftOfOtherStore(t, open(t), open(t))
	})
}

type testCase struct {
	name string
	run  func(t *testing.T, s sessionstore.Store)
}

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

func (s tenant) Limit(owner string, bytes int) { s.all.Limit(s.name+owner, bytes) }

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

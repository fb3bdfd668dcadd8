// Package storetest tests that stores keep what [sessionstore.Store] promises.
//
// It must only be imported by tests.
//
// The names of subtests begin with the clauses of the program's specification that they prove. The
// tests do not depend on the clock: a store whose clock does not advance passes too.
package storetest

import (
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

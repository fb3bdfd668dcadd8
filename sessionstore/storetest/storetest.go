// Package storetest is the contract of [sessionstore.Store] as a test suite. Whoever
// writes a Store runs it:
//
//	func TestContract(t *testing.T) {
//		storetest.Test(t, func(t *testing.T) sessionstore.Store {
//			s := mystore.New(t.TempDir())
//			t.Cleanup(func() { s.Close() })
//			return s
//		})
//	}
//
// Subtests are named by the clauses that they prove. Nothing in the suite depends on how fast the clock runs:
// a store whose clock stands still passes too, and then every list is one tie.
package storetest

import (
	"testing"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Open returns an empty store. It is called once for each subtest, whose cleanup closes the store.
type Open = func(t *testing.T) sessionstore.Store

// Test runs the contract on the stores that open returns.
func Test(t *testing.T, open Open) {
	for _, group := range [][]contract{lifecycle(), turns(), fencing(), histories(), drafts(), imports(), forks(), lists(), prunings(), models()} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
		}
	}
}

// contract is one promise, and what proves it.
type contract struct {
	name string
	run  func(t *testing.T, s sessionstore.Store)
}

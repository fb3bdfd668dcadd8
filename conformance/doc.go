// Package conformance holds no code, only tests about the repository itself.
//
// They keep docs/conformance.md true, which gives the text of every clause of the contract
// beside the tests that prove it: a clause that is called proven must have a test, the
// lists of tests must be those that exist, and a test may not carry the id of a clause
// that does not. They also keep the shape of the code: which package may import which, and
// that nothing touches what the whole process shares.
//
// A test carries a clause's id in one of these ways:
//
//	func TestA10_LoadActivatesOnlyTheGivenRoots(t *testing.T)
//	func TestW2_W3_BadLines(t *testing.T)          // two clauses
//	func FuzzW2_Connection(f *testing.F)
//	func ExampleStore_List_a18()                   // Go wants a lower-case suffix
//	t.Run("A10/omitted", …)                        // or "A10/"+name, or a table's name
//	testdata/…/w3-long-line.txtar
//
// After adding, renaming or removing such a test, run
//
//	go test ./conformance -update
//
// which "make conformance" does too. Everything is read with go/parser, whatever the platform:
// files for other operating systems count, and their tests are marked with where they run.
package conformance

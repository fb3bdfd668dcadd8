// Package containmenttest plays the containment corpus, testdata/containment, against whatever reaches files
// for a session. Its README says how a case is written.
//
//	for _, c := range containmenttest.Cases(t, "../../../testdata/containment") {
//		s := c.Stage(t) // the tree is on the disk
//		ws := open(s.Roots(), s.Denied())
//		s.Open(t) // what happens after that has happened
//		for _, a := range c.Attempts {
//			text, err := ws.read(s.Path(a))
//			s.RequireContained(t, text)
//			_ = a.Verdict("read") // what err should be
//		}
//		s.Clear()
//	}
//
// What the corpus attempts would be ruinous if anything did it. [Confine] sees to it that nothing can.
package containmenttest

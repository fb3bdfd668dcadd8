// Package stock fills a session store before the program starts on it: with many sessions, or
// with a long history, which would take too long to make through the program.
//
//	s := stock.Open(stateDir)
//	err := s.Session(ctx, stock.Session{ID: "long", Cwd: dir, Messages: 100_000})
//	err = s.Close()
package stock

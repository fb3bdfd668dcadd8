package discovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/acp-agent/acp-agent/workspace"
)

// Cut says that a bound ended a search before its end: there may be more than the catalog shows. A bound for the whole root
// also ends the search for the rows of the table that come after Place.
type Cut struct {
	Root workspace.Root
	// Place is the convention that was being searched for.
	Place string
	// At is where, in the client's spelling.
	At string
	// Bound is the field of [Options], or of [workspace.Options], Limit its value; of Timeout in nanoseconds.
	Bound string
	Limit int64
}

// String says what was cut, and by which bound.
func (c Cut) String() string {
	limit := fmt.Sprint(c.Limit)
	if c.Bound == "Timeout" {
		limit = time.Duration(c.Limit).String()
	}
	return fmt.Sprintf("%s was not searched to the end: %s (%s) was reached at %s", c.Root.Dir, c.Bound, limit, c.where())
}

// where is the place inside the root, or the convention where that says more.
func (c Cut) where() string {
	if c.At == c.Root.Dir.String() {
		return c.Place
	}
	return c.At
}

var errTimeout = errors.New("the time for one root is over")

// cut records a cut, once for each bound; of bounds of one directory once for each.
func (s *scanner) cut(r row, rel, bound string, limit int64) {
	at := s.path(rel)
	for _, c := range s.cuts {
		if c.Bound == bound && (c.At == at || (bound != "MaxDepth" && bound != "MaxEntries")) {
			return
		}
	}
	s.cuts = append(s.cuts, Cut{s.root, r.Place, at, bound, limit})
}

// exhausted reports whether the search has to end here.
func (s *scanner) exhausted(ctx context.Context, r row) bool {
	switch {
	case ctx.Err() != nil:
		s.cut(r, ".", "Timeout", int64(s.o.Timeout))
	case len(s.artifacts) >= s.o.MaxArtifacts:
		s.cut(r, ".", "MaxArtifacts", int64(s.o.MaxArtifacts))
	case s.bytes >= s.o.MaxBytes:
		s.cut(r, ".", "MaxBytes", s.o.MaxBytes)
	default:
		return false
	}
	return true
}

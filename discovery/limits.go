package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// limits bound the scan of one root and the texts assembled from a catalog. If something is left
// out because of a limit of the scan, a [Limit] reports it.
type limits struct {
	depth       int           // directories that "**" descends
	dirs        int           // directories opened
	artifacts   int           // artifacts listed
	fileSize    int           // bytes of a file; larger ones are listed as too large
	bytes       int           // bytes read
	importDepth int           // imports of imports of an instruction file
	imports     int           // files imported by an instruction file, directly and indirectly
	time        time.Duration // for one root

	text int // bytes of instructions in an assembled text
}

var defaultLimits = limits{
	depth: 6, dirs: 10_000, artifacts: 2_000, fileSize: 1 << 20, bytes: 64 << 20,
	importDepth: 4, imports: 64, time: 5 * time.Second, text: 32 << 10,
}

// errTimeout is the cause of a context that ended because of [limits].time.
var errTimeout = errors.New("the search of the folder takes too long")

// Limit says that a limit ended the scan of a root early, so that there may be more than the
// catalog shows. Limits for a whole root end the scan for the conventions after it as well.
type Limit struct {
	Root workspace.Root

	limit   string // such as "6 nested directories"
	pattern string // of the convention being looked for
	path    string // where the limit was reached first, as the client spells the root
}

// String says what was not scanned, and why.
func (l Limit) String() string {
	where := l.path
	if where == l.Root.Dir.String() {
		where = l.pattern
	}
	return fmt.Sprintf("%s was not scanned completely: the limit of %s was reached at %s",
		l.Root.Dir, l.limit, where)
}

// limitReached records that a limit was reached at rel, once for each limit.
func (s *scanner) limitReached(r row, rel, limit string) {
	if !slices.ContainsFunc(s.reached, func(l Limit) bool { return l.limit == limit }) {
		s.reached = append(s.reached, Limit{s.root, limit, r.pattern, s.path(rel)})
	}
}

// stopAtLimit reports whether a limit ends the scan of the root, which it records for the row r.
func (s *scanner) stopAtLimit(ctx context.Context, r row) bool {
	switch {
	case ctx.Err() != nil:
		s.limitReached(r, ".", s.limits.time.String())
	case s.bytes >= s.limits.bytes:
		s.limitReached(r, ".", text.Size(s.limits.bytes))
	default:
		return s.stopIfFull(r)
	}
	return true
}

// stopIfFull reports whether the root has as many artifacts as are listed, which it records for the
// row r.
func (s *scanner) stopIfFull(r row) bool {
	if len(s.artifacts) < s.limits.artifacts {
		return false
	}
	s.limitReached(r, ".", text.Count(s.limits.artifacts, "artifact", "artifacts"))
	return true
}

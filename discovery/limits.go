package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	fileSize    int64         // bytes of a file; larger ones are listed as too large
	bytes       int64         // bytes read
	importDepth int           // imports of imports of an instruction file
	imports     int           // files imported by an instruction file, directly and indirectly
	time        time.Duration // for one root

	text int // bytes of instructions in an assembled text
}

// withDefaults returns l with the defaults for zero fields.
func (l limits) withDefaults() limits {
	return limits{
		depth:       cmp.Or(l.depth, 6),
		dirs:        cmp.Or(l.dirs, 10_000),
		artifacts:   cmp.Or(l.artifacts, 2_000),
		fileSize:    cmp.Or(l.fileSize, 1<<20),
		bytes:       cmp.Or(l.bytes, 64<<20),
		importDepth: cmp.Or(l.importDepth, 4),
		imports:     cmp.Or(l.imports, 64),
		time:        cmp.Or(l.time, 5*time.Second),
		text:        cmp.Or(l.text, 32<<10),
	}
}

// errTimeout is the cause of a context that ended because of [limits].time.
var errTimeout = errors.New("the search of the folder takes too long")

// Limit says that a limit ended the scan of a root early, so that there may be more than the
// catalog shows. Limits for a whole root end the scan for the conventions after it as well.
type Limit struct {
	Root workspace.Root

	pattern string // of the convention being looked for
	path    string // where the limit was reached, as the client spells the root
	name    string // one of the constants below
	value   int64  // the limit, for limitTime in nanoseconds
}

// String says what was not scanned, and why.
func (l Limit) String() string {
	var what string
	switch l.name {
	case limitDepth:
		what = text.Count(int(l.value), "nested directory", "nested directories")
	case limitDirs:
		what = text.Count(int(l.value), "directory", "directories")
	case limitArtifacts:
		what = text.Count(int(l.value), "artifact", "artifacts")
	case limitEntries:
		what = text.Count(int(l.value), "directory entry", "directory entries")
	case limitBytes:
		what = text.Size(l.value)
	default:
		what = time.Duration(l.value).String()
	}
	where := l.path
	if where == l.Root.Dir.String() {
		where = l.pattern
	}
	return fmt.Sprintf("%s was not scanned completely: the limit of %s was reached at %s",
		l.Root.Dir, what, where)
}

// The limits that end a scan early, as in [Limit].
const (
	limitDepth     = "MaxDepth"
	limitDirs      = "MaxDirs"
	limitArtifacts = "MaxArtifacts"
	limitBytes     = "MaxBytes"
	limitEntries   = "MaxEntries"
	limitTime      = "Timeout"
)

// limitReached records that a limit was reached at rel: once for the root, or for a limit of
// directories once for each of them.
func (s *scanner) limitReached(r row, rel, name string, value int64) {
	at := s.path(rel)
	perDirectory := name == limitDepth || name == limitEntries
	for _, l := range s.reached {
		if l.name == name && (l.path == at || !perDirectory) {
			return
		}
	}
	s.reached = append(s.reached, Limit{s.root, r.pattern, at, name, value})
}

// exhausted reports whether a limit ends the scan of the root, which it records for the row r.
func (s *scanner) exhausted(ctx context.Context, r row) bool {
	switch {
	case ctx.Err() != nil:
		s.limitReached(r, ".", limitTime, int64(s.limits.time))
	case len(s.artifacts) >= s.limits.artifacts:
		s.limitReached(r, ".", limitArtifacts, int64(s.limits.artifacts))
	case s.bytes >= s.limits.bytes:
		s.limitReached(r, ".", limitBytes, s.limits.bytes)
	default:
		return false
	}
	return true
}

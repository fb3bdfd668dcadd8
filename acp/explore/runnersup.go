package explore

import "github.com/acp-agent/acp-agent/workspace/tools"

// runnersUp keeps the files whose lines have the most words, for when none has all.
type runnersUp struct {
	// bound is how many hits are kept.
	bound   int
	score   int
	hits    int
	found   []tools.Found
	dropped bool
}

// keep takes the hits of a file, unless there are better ones or enough as good.
func (r *runnersUp) keep(in tools.Found) {
	if r.dropped || in.Score < r.score {
		return
	}
	if in.Score > r.score {
		r.score, r.hits, r.found = in.Score, 0, nil
	}
	if r.hits <= r.bound {
		r.hits += len(in.Lines)
		r.found = append(r.found, in)
	}
}

// drop forgets them: something better was found.
func (r *runnersUp) drop() { *r = runnersUp{dropped: true} }

func (r *runnersUp) list(l *listing) error {
	for _, one := range r.found {
		if err := l.found(one); err != nil {
			return err
		}
	}
	return nil
}

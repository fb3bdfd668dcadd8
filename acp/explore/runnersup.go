package explore

// runnersUp keeps the findings that have the most words, for when none has all.
type runnersUp struct {
	// bound is how many hits are kept.
	bound    int
	score    int
	hits     int
	findings []runnerUp
	dropped  bool
}

type runnerUp struct {
	folder *folder
	finding
}

// keep takes a finding, unless there are better ones or enough as good.
func (r *runnersUp) keep(f *folder, in finding) {
	if r.dropped || in.score < r.score {
		return
	}
	if in.score > r.score {
		r.score, r.hits, r.findings = in.score, 0, nil
	}
	if r.hits <= r.bound {
		r.hits += len(in.hits)
		r.findings = append(r.findings, runnerUp{f, in})
	}
}

// drop forgets them: something better was found.
func (r *runnersUp) drop() { *r = runnersUp{dropped: true} }

func (r *runnersUp) list(l *listing) error {
	for _, one := range r.findings {
		if err := l.found(one.folder, one.finding); err != nil {
			return err
		}
	}
	return nil
}

package core

import "time"

// sighting says when an agent's list had a session first, as it is stored: in milliseconds since
// 1970, UTC, and negated if the list no longer has it.
type sighting int64

// neverSeen is the sighting of a session that no list had.
const neverSeen sighting = 0

// sightingOf returns the sighting at a time, or none for the zero time.
func sightingOf(at time.Time, gone bool) sighting {
	s := sighting(millis(at))
	if gone {
		return s.gone()
	}
	return s
}

// time returns the time of the sighting, the zero time if there was none.
func (s sighting) time() time.Time {
	if s == neverSeen {
		return time.Time{}
	}
	return toTime(int64(max(s, -s)))
}

// isGone reports whether the list no longer has the session.
func (s sighting) isGone() bool { return s < 0 }

// gone returns the sighting once the list no longer has the session.
func (s sighting) gone() sighting { return min(s, -s) }

// unlessGone returns the sighting, or none if the list no longer has the session.
func (s sighting) unlessGone() sighting { return max(s, neverSeen) }

// again returns the sighting once the list has the session at a time.
func (s sighting) again(now int64) sighting {
	if s > 0 {
		return s
	}
	return sighting(now)
}

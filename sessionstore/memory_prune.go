package sessionstore

import "context"

// Prune implements [Store].
func (m *Memory) Prune(ctx context.Context, q PruneQuery) (n int, err error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	unused, all := q.Bounds()
	for id, s := range m.sessions {
		updated, empty := s.record.Updated.UnixMilli(), s.record.Turns == 0 && len(s.history) == 0
		if updated >= all && (!empty || updated >= unused) {
			continue
		}
		n++
		if !q.DryRun {
			delete(m.sessions, id)
		}
	}
	return n, nil
}

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
	for _, s := range m.sessions {
		updated, empty := s.record.Updated.UnixMilli(), s.record.Turns == 0 && len(s.history) == 0 && !s.imported
		if updated >= all && (!empty || updated >= unused) {
			continue
		}
		n++
		if !q.DryRun {
			m.remove(s)
		}
	}
	return n, nil
}

package postgres

// Extend makes s the store of a later version of the program, which has one more step.
func (s *Store) Extend(sql string) {
	s.steps = append(s.steps, step{version: s.version() + 1, oldest: s.version(), sql: sql})
}

// SchemaVersion returns the newest version of the schema that this program knows.
func (s *Store) SchemaVersion() int { return s.version() }

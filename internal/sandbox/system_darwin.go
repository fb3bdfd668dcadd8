package sandbox

// devices returns what every process may write to.
func devices() []string { return []string{"/dev"} }

// systemPaths returns what every process may read in mode Strict.
func systemPaths() []string { return seatbeltPaths() }

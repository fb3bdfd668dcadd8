package process

// NetworkLevel returns how a list of hosts is enforced.
var NetworkLevel = networkLevel

// NoHelper is the command line of a helper with which no command gets a network namespace.
var NoHelper = func() []string {
	const program = "/bin/false"
	namespaces.Store(program, unavailable)
	return []string{program}
}()

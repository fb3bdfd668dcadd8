package sandbox

// devices returns what every process may write to, as far as it exists. Without the right to
// control pseudo-terminals, shells that agents start fail silently.
func devices() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts",
		"/dev/shm"}
}

// systemPaths returns what every process may read in mode Strict. /proc does not show more of
// processes outside the sandbox than their names, arguments and use of resources: the kernel keeps
// a restricted process from examining others.
func systemPaths() []string {
	return []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/opt", "/etc",
		"/nix/store", "/gnu/store", "/snap", "/proc", "/sys", "/run/systemd/resolve",
		"/run/current-system", "/var/lib/ca-certificates", "/dev/random", "/dev/urandom"}
}

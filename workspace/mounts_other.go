//go:build !linux && !darwin

package workspace

// mountPoints are where something is mounted now. This system does not say, or mounts by links: only
// the roots' own mounts are reached.
func mountPoints() []location { return nil }

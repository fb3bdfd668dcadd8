//go:build !linux

package sandbox

import "runtime"

func available() (int, error) {
	return 0, unavailable("acp-agent has none for %s, only for Linux", runtime.GOOS)
}

func (p Policy) restrict() error { return Available() }

func onMainThread() bool { return false }

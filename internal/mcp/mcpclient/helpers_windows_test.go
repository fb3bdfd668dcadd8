package mcpclient_test

import "os"

// ended reports whether a process is gone.
func ended(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return true
	}
	_ = p.Release()
	return false
}

//go:build !windows

package workspace

type native = posix

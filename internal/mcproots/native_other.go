//go:build !windows

package mcproots

const native = posix

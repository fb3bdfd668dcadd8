//go:build !linux

package proxy_test

func exchange(string) int { return 90 }

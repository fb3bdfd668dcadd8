//go:build unix && !linux

package process_test

func tryAll() int { return 2 }

func openHandle() int { return 2 }

package main

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// ownedByAnother returns false: on Windows files inherit the permissions of their folder.
func ownedByAnother(fs.FileInfo) bool { return false }

// writableByOthers is not known either.
func writableByOthers(fs.FileInfo) bool { return false }

// terminalWidth returns the number of columns of a terminal, 0 if it is unknown.
func terminalWidth(terminal *os.File) int {
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(windows.Handle(terminal.Fd()), &info) != nil {
		return 0
	}
	return int(info.Window.Right-info.Window.Left) + 1
}

// discardTyped discards what was typed on a terminal and not read.
func discardTyped(terminal *os.File) {
	_ = windows.FlushConsoleInputBuffer(windows.Handle(terminal.Fd()))
}

package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
)

// state is the directory of the session store.
func (f serveFlags) state() (string, error) {
	if f.stateDir != "" {
		return filepath.Abs(f.stateDir)
	}
	dir, err := defaultStateDir()
	if err != nil {
		return "", fmt.Errorf("no place to keep sessions: %w; name one with --state-dir", err)
	}
	return dir, nil
}

// warnOfOthers warns of a state directory that others can write: what is remembered there of servers that may be started
// would be theirs to say.
func warnOfOthers(logger *slog.Logger, dir string) {
	info, err := os.Stat(dir)
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		logger.Warn("others can write to the state directory: chmod 700 makes it private", "stateDir", dir, "mode", info.Mode().Perm())
	}
}

// defaultStateDir follows the platform: XDG state, Application Support, LocalAppData.
func defaultStateDir() (string, error) {
	switch runtime.GOOS {
	case "windows":
		if dir := os.Getenv("LocalAppData"); dir != "" {
			return filepath.Join(dir, "acp-agent"), nil
		}
		return "", fmt.Errorf("%%LocalAppData%% is not set")
	case "darwin":
		home, err := os.UserHomeDir()
		return filepath.Join(home, "Library", "Application Support", "acp-agent"), err
	default:
		if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
			return filepath.Join(dir, "acp-agent"), nil
		}
		home, err := os.UserHomeDir()
		return filepath.Join(home, ".local", "state", "acp-agent"), err
	}
}

// defaultStateDirText is the default as the help shows it, the same on every account.
func defaultStateDirText() string {
	switch runtime.GOOS {
	case "windows":
		return `%LocalAppData%\acp-agent`
	case "darwin":
		return "~/Library/Application Support/acp-agent"
	default:
		return "$XDG_STATE_HOME/acp-agent or ~/.local/state/acp-agent"
	}
}

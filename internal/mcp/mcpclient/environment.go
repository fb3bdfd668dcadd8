package mcpclient

import (
	"os"
	"runtime"
)

// BasicVariables returns the names of the environment variables that every server gets, even one
// that a file in a root configures without naming them. Other variables may be secrets, or change
// what the configured command does.
func BasicVariables() []string {
	if runtime.GOOS == "windows" { // where programs do not start without some of them
		return []string{
			"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT",
			"PROCESSOR_ARCHITECTURE", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP",
			"USERNAME", "USERPROFILE", "WINDIR",
		}
	}
	return []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}
}

// BasicEnvironment returns the basic variables that are set, as NAME=VALUE. It is not nil.
func BasicEnvironment() []string {
	env := []string{}
	for _, name := range BasicVariables() {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the module's version as it was built.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}

// versionLine is the version with what it was built for and by.
func versionLine() string {
	return fmt.Sprintf("acp-agent %s %s/%s %s", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

func newVersion(s streams) *cobra.Command {
	return heeding(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(s.out, versionLine())
			return err
		},
	})
}

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

// printVersion prints the version with what it was built for and by.
func printVersion(s streams) error {
	_, err := fmt.Fprintf(s.out, "acp-agent %s %s/%s %s\n", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	return err
}

func newVersion(s streams) *cobra.Command {
	return heeding(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE:  func(*cobra.Command, []string) error { return printVersion(s) },
	})
}

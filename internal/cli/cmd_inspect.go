package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/internal/web"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func newInspect(set *settings) *cobra.Command {
	listen, traces := "127.0.0.1:0", []string(nil)
	return set.newCommand("inspect", noArgs, needsStore,
		flags{"listen": &listen, "trace": &traces, "mounts": nil},
		func(cmd *cobra.Command, _ []string) error {
			return inspect(cmd.Context(), set, listen, traces)
		})
}

// inspect serves the page until ctx ends.
func inspect(ctx context.Context, set *settings, listen string, traces []string) error {
	roots, err := set.workspace()
	if err != nil {
		return err
	}
	traces, err = usage.AbsolutePaths(traces...)
	if err != nil {
		return err
	}
	for _, path := range traces {
		info, err := os.Stat(path)
		if err != nil {
			return usage.Errorf("--trace: %v; acp-agent --trace FILE writes one",
				namedfile.Explain(err))
		}
		if !info.Mode().IsRegular() && !info.IsDir() {
			return usage.Errorf("--trace: %s is neither a file nor a folder", text.Printable(path))
		}
	}
	return set.withStore(func(store sessionstore.Store) error {
		listener, err := listenLoopback(ctx, "--listen", listen)
		if err != nil {
			return err
		}
		page := web.New(listener.Addr().String(), web.Options{
			Store: store, Traces: traces, Workspace: roots, Snapshots: set.snapshots(),
			Details: func(one sessionstore.Session) web.Details {
				d := web.Details{Given: sessions.NewReport(one).Directories,
					Continue: set.continueLine(one, string(one.ID), `"Where were we?"`)}
				roots := one.Keys.Roots
				_, declared, _ := set.declaredRoots(roots.Cwd(), one.ID) // or it is shown without
				for _, dir := range roots.All() {
					d.From = append(d.From, text.Printable(declared[dir]))
				}
				return d
			},
		})
		if _, err := fmt.Fprintf(set.out, "%s\n", page.URL()); err != nil {
			return err
		}
		set.note("open this address in a browser; Ctrl-C ends it")
		return serveHTTP(ctx, listener, page)
	})
}

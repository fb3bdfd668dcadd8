package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/workspace"
)

const aboutDiscover = `discover prints what a session on the folders would find in them: instructions, skills, commands and the
configuration of MCP servers, by folder, earlier folders first. What does not count is marked, with the reason:

  -  shadowed by something that comes first
  !  broken, or too large
  *  used, though it breaks a rule; the rule is named below it

With --for it prints the further instructions for one file instead: those in the directories on the way to it, and rules
whose globs match it. Nothing that is found is run or started.

--json prints one object with the members "roots", "artifacts" and "cuts"; with --for an array of artifacts.
It exits with 1 if something is broken, too large, or was not scanned completely.`

// discoverFlags are the flags of the discover subcommand.
type discoverFlags struct {
	runFlags
	file string
}

// newDiscover shows what is found in folders, without opening a session.
func newDiscover(s streams, f *serveFlags) *cobra.Command {
	var d discoverFlags
	cmd := &cobra.Command{
		Use:   "discover [--cwd DIR] [--dir DIR]... [--for FILE] [--json]",
		Short: "Show the instructions, skills, commands and MCP servers of some folders",
		Long:  aboutDiscover,
		Example: `  acp-agent discover --cwd app --dir ../shared --dir ../skills
  acp-agent discover --cwd app --for app/web/src/client.ts`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return discover(cmd.Context(), s, *f, d)
		},
	}
	d.rootFlags(cmd)
	cmd.Flags().StringVar(&d.file, "for", "", "show the further instructions for `FILE`")
	cmd.Flags().BoolVar(&d.json, "json", false, "print JSON")
	return heeding(cmd, "max-roots", "mounts")
}

func discover(ctx context.Context, s streams, f serveFlags, d discoverFlags) error {
	roots, err := d.roots()
	if err != nil {
		return err
	}
	w, err := workspace.Open(ctx, roots, f.workspace())
	if err != nil {
		return flagged(err, "cwd", "dir")
	}
	defer w.Close()
	catalog, err := discovery.Scan(ctx, w, discovery.Options{})
	if err != nil {
		return err
	}
	if d.file != "" {
		return d.further(ctx, s, catalog)
	}
	if d.json {
		err = json.NewEncoder(s.out).Encode(catalog)
	} else {
		err = printCatalog(s.out, catalog)
	}
	if err != nil {
		return err
	}
	return fault(catalog.Artifacts(), catalog.LimitsReached())
}

// further prints what applies to one file.
func (d discoverFlags) further(ctx context.Context, s streams, catalog *discovery.Catalog) error {
	paths, err := absolutePaths(d.file)
	if err != nil {
		return err
	}
	list, err := catalog.For(ctx, paths[0])
	if err != nil {
		return err
	}
	if d.json {
		err = json.NewEncoder(s.out).Encode(append([]discovery.Artifact{}, list...))
	} else {
		err = printFurther(s.out, list)
	}
	if err != nil {
		return err
	}
	return fault(list, nil)
}

// fault is the exit of discover for what cannot all be used; the tree has said why.
func fault(list []discovery.Artifact, limits []discovery.Limit) error {
	broken := 0
	for _, a := range list {
		if a.State == discovery.Invalid || a.State == discovery.TooLarge {
			broken++
		}
	}
	switch {
	case broken > 0:
		return fmt.Errorf("%d of %d artifacts cannot be used", broken, len(list))
	case len(limits) > 0:
		return fmt.Errorf("not everything was searched: %s", limits[0])
	default:
		return nil
	}
}

package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

func newSessionsImport(set *settings) *cobra.Command {
	r := rootFlags{cwd: "."}
	return set.newCommand("import", takes(1, 1, "one FILE", ", or - for stdin"), needsStore,
		flags{"cwd": &r.cwd, "dir": &r.dirs, "max-line": nil, "mounts": nil},
		func(cmd *cobra.Command, args []string) error {
			in, name := set.input(cmd.Context(), "a session"), "stdin"
			if args[0] != "-" {
				file, err := namedfile.Open(args[0])
				if err != nil {
					return fmt.Errorf("%w (acp-agent sessions export ID --format json makes such "+
						"a file)", namedfile.Explain(err))
				}
				defer file.Close()
				in, name = file, text.Printable(args[0])
			}
			var roots workspace.Roots // none for those in the file
			if cmd.Flags().Changed("cwd") || cmd.Flags().Changed("dir") {
				var err error
				if roots, err = r.roots(); err != nil {
					return err
				}
			}
			options, err := set.workspace()
			if err != nil {
				return err
			}
			store, err := set.serverStore(set.log)
			if err != nil {
				return err
			}
			i := sessions.Import{Name: name, MaxLine: set.maxLine, Roots: roots, Workspace: options}
			id, updates, err := i.Store(cmd.Context(), store, in)
			if err = cmp.Or(err, store.Close()); err != nil {
				return err
			}
			set.note("imported %s", text.Count(updates, "update", "updates"))
			_, err = fmt.Fprintln(set.out, id)
			return err
		})
}

package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/serve"
	"github.com/acp-agent/acp-agent/internal/usage"
)

func newConnect(set *settings) *cobra.Command {
	var tokenFile string
	url := takes(1, 1, "the URL of one server", ", such as wss://agent.example.org/acp")
	return set.newCommand("connect", url, needsConfig,
		flags{"token-file": &tokenFile, "max-line": nil},
		func(cmd *cobra.Command, args []string) error {
			to, err := serve.ParseURL(args[0])
			if err != nil {
				return usage.Errorf("%v", err)
			}
			token := strings.TrimSpace(os.Getenv(serve.TokenVariable))
			if tokenFile != "" {
				if token, err = readToken(tokenFile, "acp-agent tokens add, on the server,"); err != nil {
					return err
				}
			}
			if token == "" {
				return usage.Errorf("a token is needed: set %s or use --token-file; on the server, acp-agent "+
					"tokens add prints one", serve.TokenVariable)
			}
			if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
				return usage.Errorf("%s is not a token: it has a space, a line break or another character that "+
					"tokens do not have", serve.TokenVariable)
			}
			if set.interactive() {
				return usage.Errorf("standard input is a terminal, but an editor is expected there: " +
					"configure it to start this command")
			}
			link, err := serve.Dial(cmd.Context(), to, token, set.maxLine)
			if err != nil {
				return err
			}
			if err := link.Pass(cmd.Context(), set.in, set.out); err != nil {
				return &servingError{err}
			}
			return nil
		})
}

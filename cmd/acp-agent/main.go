// Command acp-agent is an ACP agent for sessions with several root folders. It serves one editor on
// standard input and output, on its own or in front of another ACP agent.
//
//	acp-agent [flags]                         answer from the session's folders
//	acp-agent [flags] --model NAME            answer with a configured language model
//	acp-agent [flags] -- COMMAND ARGS...      run another agent behind it
//	acp-agent run --cwd D --dir D... PROMPT   try it from a shell
//
// Standard output carries only the protocol; messages for people go to standard error or a log
// file.
package main

import (
	"os"

	"github.com/acp-agent/acp-agent/internal/cli"
)

func main() { os.Exit(cli.Main()) }

// Package model is the backend with a language model: a small coding agent for sessions with
// several roots.
//
// The model works with the tools of package workspace/tools on the session's roots, with those of
// the session's MCP servers, and with a tool that runs commands. It asks the user before each
// change, unless the session's mode says otherwise, and before commands.
//
//	acp.Serve(ctx, os.Stdin, os.Stdout, acp.Options{Backend: func() backend.Backend {
//		return model.New(model.Options{Models: []model.Model{
//			{ID: "local", API: model.OpenAI, BaseURL: "http://127.0.0.1:11434/v1", Name: "qwen3"},
//		}})
//	}})
//
// # Where to find things
//
// A prompt goes through the files in this order: session.go begins a turn, prompt.go reads the
// prompt, and turn.go is the loop of the turn. system.go and tools.go say what a request begins
// with, budget.go and compact.go make it fit, answer.go shows the answer as it arrives, and call.go
// runs and shows one of its calls. The file of each tool has its name.
//
// conversation.go holds what the model knows, and restores it from the stored history, in which
// entry.go has what clients do not show. rejected.go and undo.go leave parts of it out, budget.go
// shortens results of tools, and compact.go replaces it with a summary. failures.go tells the user
// what went wrong.
//
// # Who asks
//
// The user is asked before
//
//	a change of a file     modelCall.permit in permission.go; permission.WhyAsk for changes that ask
//	                       although the mode allows edits
//	a command              modelCall.permitCommand in run_command.go
//	a tool of a server     mcpCall.askPermission in permission.go of package acp/internal/servers
//	an unlisted resource   modelCall.readResource in server_resources.go
//	a repeated call        modelTurn.askToGoOn in loops.go
//
// Rules may answer questions about files, commands and tools of servers: host.Ask in acp/ask.go.
//
// # What survives
//
// The stored history is all that a session needs. When the session is loaded, everything that the
// model knew is restored from it: prompts, answers, and the tool calls with their arguments and
// results. The member acp-agent of an update's _meta says what clients do not show.
package model

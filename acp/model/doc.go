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
// turn.go is the loop of a turn: send a request, run its tool calls, repeat. call.go runs and shows
// one call, and the file of each tool has its name. conversation.go restores what the model knows
// from the stored history, compact.go shortens it, and rejected.go leaves out what the model's
// server does not accept. shares.go says how much of the model's context its instructions and tools
// may have. unread.go finds calls and thoughts that the server has left in the text.
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
// Rules may answer the first, the third and a tool of a server: session.ask in acp/permission.go.
//
// # What survives
//
// The stored history is all that a session needs. When the session is loaded, everything that the
// model knew is restored from it: prompts, answers, and the tool calls with their arguments and
// results. The member acp-agent of an update's _meta says what clients do not show.
package model

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
//	model.go, session.go   the backend and its sessions
//	commands.go            slash commands
//	undo.go                /undo
//	shares.go              how much of the model's context its instructions and tools may have
//	turn.go                the loop of a turn: send a request, run its tool calls, repeat
//	answer.go              shows an answer while it arrives, and what it has used
//	failures.go            what the user is told when a request fails, and fallbacks
//	tools.go               which tools the model has, and which calls run together
//	call.go                how a tool call is run and shown
//	loops.go               calls that the model makes again and again
//	unread.go              calls and thoughts that the server has left in the text
//	draft.go               tool calls that the model is still writing
//	permission.go          which changes ask the user first
//	file_tools.go          the tools on files
//	open_files.go          files that the client has open, with changes that are not saved
//	server_tools.go        the tools of the session's MCP servers
//	server_resources.go    the tool that reads their resources
//	run_command.go         the tool that runs commands, in terminals of a client that offers them
//	run_child.go           commands as children of this process
//	plan.go                the tool that shows a plan
//	settings.go            mode, model and thought level of a session
//	system.go, system.md   the system prompt
//	prompt.go              from the user's prompt to a message for the model
//	conversation.go        what the model knows, restored from the stored history
//	rejected.go            leaves out what the model's server does not accept
//	compact.go             shortens a conversation that is too long, with summary.md
//	sampling.go            answers of the model to requests of the session's MCP servers
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

// Package tools are the file tools over a [workspace.Workspace]: for a model, for an MCP server that offers
// them to one, and for whoever answers a person from the session's files.
//
// A [Set] is the tools of one workspace, by name, with JSON schemas for what they take and give:
//
//	list_roots, list_directory, file_info   what there is
//	find_files, search                      files by name, lines by content
//	read_file                               lines of a file
//	write_file, edit_file                   a new content, and an exact replacement
//
//	set := tools.New(ws, tools.Options{Permit: ask})
//	result, err := set.Call(ctx, "read_file", json.RawMessage(`{"path":"main.go","limit":20}`))
//
// A path argument is called path. A relative one starts at cwd, the first root, and nowhere else (A20).
// Nothing here opens a file by itself: all goes through the workspace, so what is out of scope is refused
// (A23), and no argument can change the scope (A24). Every answer names the root that owns each path, is
// bounded by [Options], and says where it was cut and how to see more.
//
// The tools that change a file are offered only to a host that decides about each change: its [Permit] is
// shown where the path really leads, the root that owns it, and the difference (A30). What was
// shown is what is written, or nothing is (C11).
//
// Beneath the tools are the parts that they are made of, for hosts with an interface of their own: [Scan]
// goes through files in parallel and in order, [Pattern] and [Glob] say what is looked for, and [Change]
// is a change that is planned, shown, and then made.
package tools

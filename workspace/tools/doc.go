// Package tools provides file tools on a [workspace.Workspace] for language models, and for MCP
// servers that offer tools to them.
//
// A [Set] holds the tools of one workspace, with JSON schemas of their arguments:
//
//	list_roots, list_directory, directory_tree   what exists
//	file_info, find_files, search                one file, files by name, lines by content
//	read_file, read_files, read_media            text; images, sounds and PDFs
//	find_skills                                  texts on how to do a task
//	write_file, edit_file                        replace a file, or texts in it
//	create_directory, delete_file, move_file     change the tree
//
//	set := tools.New(ws, tools.Options{Permit: ask})
//	result, err := set.Call(ctx, "read_file", json.RawMessage(`{"path":"main.go","limit":20}`))
//
// Relative paths start at cwd, the first root, which models know as the working directory. Every
// access goes through the workspace, which rejects paths outside its roots; no argument can widen
// the scope. Results name the root of each path and are bounded; a truncated result says how to get
// the rest.
//
// Tools that change files are only available if the host supplies a [Permit], which sees each
// [Change] before it is made: the resolved path, its root, the difference, and the missing
// directories that are created with it. A change is made exactly as shown, or not at all.
//
// table.go has a row for each tool: its name, its description and the function that serves it, in
// the file of its name.
package tools

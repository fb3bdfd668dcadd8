// Package workspace is a session's root set: what was asked for, and what was opened.
//
// [Roots] is the request as a value: the ordered list [cwd, ...additionalDirectories], checked
// by the rules that need no file system, and immutable. [NewRoots] is the
// only way from strings to one, so an invalid root set does not exist. It keeps the spelling of
// whoever sent it; comparing by real path is somebody else's second key.
//
// [Workspace] is a Roots that was opened: each root held by a directory handle
// (an [os.Root]) from that moment on, with its real path. All file access of a
// session goes through it. A path is in scope if the operating system's
// resolution of it ends in a root, and every link on the way lies in a root and points into one
// (clause A23). That is decided by opening through the handles, never by
// comparing strings that were resolved earlier.
//
//	roots, err := workspace.NewRoots("/src/app", []string{"/src/lib"})
//	ws, err := workspace.Open(ctx, roots, workspace.Options{})
//	defer ws.Close()
//	f, err := ws.Open("../lib/go.mod") // relative paths start at cwd, and only there
//
// A path is resolved in one of two ways that give the same answer. Most take a single open through
// the root that the path names (direct.go). What that cannot decide, such as a link to another
// root, is walked from directory handle to directory handle (resolve.go). Whoever opens many files
// takes a [Directory], or [Workspace.Walk], and pays for the path once.
//
// Writing always walks, and only then makes, in the directory that the walk holds, a file that takes
// the name of the one to be replaced (write_replace.go). Nothing else here changes the disk.
//
// Paths that a client sent are spelled its way; a [Ref] says where one really is: the root that
// owns it and the path inside that root. With nested roots the longest one owns.
package workspace

// Package workspace is a session's root set: what was asked for, and what was opened.
//
// [Roots] is the request as a value: the ordered list [cwd, ...additionalDirectories], checked
// by the rules that need no file system, and immutable. [NewRoots] is the
// only way from strings to one, so an invalid root set does not exist. It keeps the spelling of
// whoever sent it; comparing by real path is somebody else's second key.
//
// [Workspace] is a Roots that was opened: each root held by a directory handle
// from that moment on, with its real path. All file access of a
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
// A path is resolved in one way (resolve.go): from directory handle to directory handle, one name at a
// time, as an operating system does it. A handle (handle_linux.go) takes no more than a name, follows no link, and reaches
// no mount that was not granted ([Mounts]). Links are read, and walked by their text. Whoever opens many files takes a
// [Directory], [Workspace.Walk], or [Workspace.Scan] with several workers, and pays for the path once.
//
// On Linux a handle is a descriptor. Elsewhere it is an [os.Root], on which the same walk runs: that
// compiles and its path rules are tested, but it was run neither on macOS nor on Windows. On Windows a
// junction, and the place where a volume is mounted, count as links.
//
// What changes the disk walks too, and then works in the directory that the walk holds, by a name in
// it. A file is written as a whole, beside the one whose name it takes (write_replace.go).
//
// Paths that a client sent are spelled its way; a [Ref] says where one really is: the root that
// owns it and the path inside that root. With nested roots the longest one owns.
package workspace

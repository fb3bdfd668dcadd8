// Package workspace opens a set of root directories and confines all file access to them.
//
// A [Roots] is an ordered set of directories, the working directory (cwd) first. [NewRoots] parses
// one from paths, so an invalid root set cannot be constructed. It keeps the caller's spelling of
// each path.
//
// A [Workspace] is a Roots that was opened: it holds each root by a directory handle from then on.
// A path is in scope if the operating system's resolution of it ends in a root, and every link on
// the way lies in a root and points into one. Opening through the handles decides that, never a
// comparison of paths that were resolved earlier. So nothing outside is reached even if somebody
// replaces directories by links at the same time.
//
//	roots, err := workspace.NewRoots("/src/app", []string{"/src/lib"})
//	ws, err := workspace.Open(ctx, roots, workspace.Options{})
//	defer ws.Close()
//	f, err := ws.Open("../lib/go.mod") // relative paths start at cwd
//
// All paths are resolved in one way (resolve.go): one name at a time, from directory handle to
// directory handle. On the way every directory is checked against the policy (policy.go) and the
// mounts that belong to the roots (mounts.go). Package dirfd implements the directory handles. To
// read many files use a [Directory], or [Workspace.Walk] with several workers, which resolve a path
// only once.
//
// A change resolves its path in the same way, and then works on a name in the directory that it
// holds. A file is only ever written as a whole: a new file takes its name (write.go), while others
// that want to change it wait (lock.go). A draft that a killed process leaves is removed by a
// later write.
//
// A [Ref] says where something really is: the root that owns it and the path inside that root. Of
// nested roots the innermost owns a path.
//
// A root may be read-only ([Grant]): everything in it can be read, and no change is made there.
//
// What somebody may read and change in the roots can be narrowed with [Workspace.Checked]
// (access.go): each file is checked once it is open, before it is read.
//
// Other programs open paths in their own way: check a path with [Workspace.HandOverFile] or
// [Workspace.HandOverDir] before you give it to one (handover.go).
//
// On macOS and Windows the package compiles and its path rules are tested, but it has not been run
// there.
package workspace

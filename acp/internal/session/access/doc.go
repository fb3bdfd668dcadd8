// Package access decides which files and commands of the client a backend may use, and serves files
// that the client must not open.
//
//   - paths.go: the paths in a request must be in the roots.
//   - rules.go: what a request does, and which rule of the user is about that.
//   - files.go: files outside the roots that the user allows to read, and those of a restricted
//     backend.
package access

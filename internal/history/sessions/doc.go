// Package sessions does what commands do to stored sessions, in any store: it lists and describes
// them, exports and imports them, lets them follow a folder that was moved, and copies them to
// another store.
package sessions

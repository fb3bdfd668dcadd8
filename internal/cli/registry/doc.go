// Package registry reads lists of ACP agents in the format of the ACP registry, registry.json, and
// says how their programs are started here.
//
// A registry comes from somebody else, so Read accepts only entries whose strings have no special
// meaning to a shell or to a terminal. Nothing in this package installs or starts a program.
package registry

package protocol

import "slices"

// A ContentType describes the type of a content block, or of an entry in the content of a tool
// call. It is sent only to a client that has declared the capability Needs. All of them pass between
// the client and the agent as they are.
type ContentType struct {
	Name       string
	OfToolCall bool
	Needs      string
}

// contentTypes are those of the newest schema, stable and unstable, and those of later releases.
var contentTypes = []ContentType{
	{"text", false, ""},
	{"image", false, ""},
	{"audio", false, ""},
	{"resource_link", false, ""},
	{"resource", false, ""},
	{"content", true, ""},
	{"diff", true, ""},
	{"terminal", true, Terminals},
	{"session", true, Subagents},
}

// ContentTypes returns the types of content that the program knows.
func ContentTypes() []ContentType { return slices.Clone(contentTypes) }

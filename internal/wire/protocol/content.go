package protocol

import "slices"

// A ContentType describes the type of a content block, or of an entry in the content of a tool
// call. It is sent only to a client that has declared the capability Needs. All of them pass
// between the client and the agent as they are. A content block has at least the strings Required,
// and may have the strings Optional, or null in their place.
type ContentType struct {
	Name       string
	OfToolCall bool
	Needs      string
	Required   []string
	Optional   []string
}

// contentTypes are those of the newest schema, stable and unstable, and those of later releases.
var contentTypes = []ContentType{
	{Name: "text", Required: []string{"text"}},
	{Name: "image", Required: []string{"data", "mimeType"}, Optional: []string{"uri"}},
	{Name: "audio", Required: []string{"data", "mimeType"}},
	{Name: "resource_link", Required: []string{"name", "uri"},
		Optional: []string{"description", "mimeType", "title"}},
	{Name: "resource"},
	{Name: "content", OfToolCall: true},
	{Name: "diff", OfToolCall: true},
	{Name: "terminal", OfToolCall: true, Needs: Terminals},
	{Name: "session", OfToolCall: true, Needs: Subagents},
}

// ContentTypes returns the types of content that the program knows.
func ContentTypes() []ContentType { return slices.Clone(contentTypes) }

// BlockType returns the type of content blocks with a name, and whether there is one.
func BlockType(name string) (t ContentType, ok bool) {
	i := slices.IndexFunc(contentTypes, func(t ContentType) bool {
		return t.Name == name && !t.OfToolCall
	})
	if i < 0 {
		return ContentType{}, false
	}
	return contentTypes[i], true
}

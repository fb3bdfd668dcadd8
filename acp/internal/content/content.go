// Package content checks the content of prompts and of clients' instructions, which is stored,
// shown again and passed on.
package content

import (
	"encoding/json"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// CheckBlock checks that a content block can be stored and shown again: it has a type that the
// protocol knows, and the members that this has are of their types.
func CheckBlock(v *strictjson.Violations, f strictjson.Field) {
	block, ok := v.Object(f)
	if !ok {
		return
	}
	kind := block.Field("type")
	name, wrong := kind.Text()
	if wrong != nil {
		v.Add(wrong...)
		return
	}
	known, ok := protocol.BlockType(name)
	if !ok {
		v.Add(kind.Refuse(strictjson.Unsupported).Expecting(
			"use text, image, audio, resource_link or resource"))
	}
	for _, member := range known.Required {
		v.Text(block.Field(member))
	}
	for _, member := range known.Optional {
		v.OptionalText(block.Field(member))
	}
	checkUnlessNull(block.Field("_meta"), func(f strictjson.Field) { v.Object(f) })
	checkUnlessNull(block.Field("annotations"), func(f strictjson.Field) { checkAnnotations(v, f) })
	switch name {
	case "resource_link":
		checkNumber(v, block.Field("size"), new(int64))
	case "resource":
		checkResource(v, block.Field(name))
	}
}

// checkUnlessNull checks a member that may be absent or null.
func checkUnlessNull(f strictjson.Field, check func(strictjson.Field)) {
	if f.Present() && !f.IsNull() {
		check(f)
	}
}

// checkNumber checks a member that may be a number of the type of to.
func checkNumber(v *strictjson.Violations, f strictjson.Field, to any) {
	checkUnlessNull(f, func(f strictjson.Field) {
		if json.Unmarshal(f.Raw(), to) != nil {
			v.Add(f.Refuse(strictjson.Type).Expecting("a number"))
		}
	})
}

// checkAnnotations checks the annotations of a content block.
func checkAnnotations(v *strictjson.Violations, f strictjson.Field) {
	annotations, ok := v.Object(f)
	if !ok {
		return
	}
	checkUnlessNull(annotations.Field("audience"), func(f strictjson.Field) { v.Texts(f) })
	v.OptionalText(annotations.Field("lastModified"))
	checkNumber(v, annotations.Field("priority"), new(float64))
	checkUnlessNull(annotations.Field("_meta"), func(f strictjson.Field) { v.Object(f) })
}

// checkResource checks an embedded resource.
func checkResource(v *strictjson.Violations, f strictjson.Field) {
	resource, ok := v.Object(f)
	if !ok {
		return
	}
	v.Text(resource.Field("uri"))
	v.OptionalText(resource.Field("mimeType"))
	checkUnlessNull(resource.Field("_meta"), func(f strictjson.Field) { v.Object(f) })
	text, blob := resource.Field("text"), resource.Field("blob")
	switch {
	case text.Present() && !text.IsNull():
		v.Text(text)
	case blob.Present():
		v.Text(blob)
	default:
		v.Add(text.Refuse(strictjson.Required).Expecting("a text or a blob"))
	}
}

// CheckSystemPrompt checks the client's instructions for a session. As ACP demands, those that
// cannot be followed as a whole are refused.
func CheckSystemPrompt(v *strictjson.Violations, f strictjson.Field, by backend.SystemPrompts) {
	switch {
	case by == backend.SystemPromptsUnchecked || !f.Present() || f.IsNull():
		return
	case by == backend.SystemPromptsRefused:
		v.Add(f.Refuse(strictjson.Unsupported).Expecting("there is no model that would follow it"))
		return
	}
	prompt, ok := v.Object(f)
	if !ok {
		return
	}
	mode := prompt.Field("mode")
	text, wrong := mode.Text()
	if v.Add(wrong...); wrong == nil && text != "append" && text != "override" {
		v.Add(mode.Refuse(strictjson.Unsupported).Expecting("use append or override"))
	}
	content := prompt.Field("content")
	if blocks, wrong := content.Items(); wrong == nil && len(blocks) == 0 {
		v.Add(content.Refuse(strictjson.Empty).Expecting("a text"))
	}
	for _, b := range v.Items(content) {
		v.Add(checkInstruction(b)...)
	}
}

// checkInstruction checks a content block of a system prompt.
func checkInstruction(f strictjson.Field) []strictjson.Violation {
	block, wrong := f.Object()
	if wrong != nil {
		return wrong
	}
	kind := block.Field("type")
	if name, wrong := kind.Text(); wrong != nil {
		return wrong
	} else if name != "text" {
		return []strictjson.Violation{kind.Refuse(strictjson.Unsupported).Expecting("use text")}
	}
	text, wrong := block.Field("text").Text()
	if wrong == nil && strings.TrimSpace(text) == "" {
		wrong = append(wrong, block.Field("text").Refuse(strictjson.Empty).Expecting("a text"))
	}
	return wrong
}

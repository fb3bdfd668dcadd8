package proxy

import (
	"strings"

	"github.com/acp-agent/acp-agent/discovery"
)

// A child finds what is under its working directory. The instructions of the other roots it is told with a
// prompt, and again when they have changed: what it was told last is what counts.

const (
	instructionsChanged = "These instructions take the place of those that you were given before in this session.\n"
	instructionsGone    = "The instructions of other directories that you were given before in this session count no more.\n"
	instructionsCut     = "\n(cut: the rest did not fit)\n"
)

// instructions are those of the other roots, in at most limit bytes, and their digest: no text if they are those that
// known stands for, which is "" for none.
func instructions(catalog *discovery.Catalog, known string, limit int) (text, now string) {
	if catalog == nil {
		return "", known
	}
	text = catalog.Instructions(discovery.OtherRoots).String()
	if text != "" {
		now = digestOf(text)
	}
	switch {
	case now == known:
		return "", now
	case text == "":
		return instructionsGone, now
	}
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + instructionsCut
	}
	if known != "" {
		text = instructionsChanged + text
	}
	return text, now
}

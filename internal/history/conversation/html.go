package conversation

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"time"
)

// Style is the style of a conversation, which exported pages contain.
//
//go:embed conversation.css
var Style string

// WriteHTML writes a conversation as an HTML page. It needs no other file, runs no script and
// loads nothing: a policy in the page forbids it.
func WriteHTML(w io.Writer, d Document) error {
	h := htmlWriter{bufio.NewWriter(w)}
	hash := sha256.Sum256([]byte(Style))
	h.raw(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'sha256-%s'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
`, base64.StdEncoding.EncodeToString(hash[:]))
	h.node(element("title", "", words(d.Title)))
	h.raw("\n<style>%s</style>\n</head>\n<body class=\"document\">\n", Style)
	properties := element("dl", "")
	property := func(name, tag, value string) {
		properties.Children = append(properties.Children, element("dt", "", words(name)),
			element("dd", "", element(tag, "", words(value))))
	}
	property("Session", "code", d.Session)
	property("Agent", "span", d.Agent)
	for i, folder := range d.Folders {
		property(fmt.Sprint("Folder ", i), "code", folder)
	}
	property("Created", "span", d.Created.Local().Format(time.DateTime+" MST"))
	property("Last activity", "span", d.Updated.Local().Format(time.DateTime+" MST"))
	h.node(element("header", "", element("h1", "", words(d.Title)), properties))
	h.raw("\n<main>\n")
	for _, e := range d.Entries {
		h.node(view{asker: "You"}.entry(e))
		h.raw("\n")
	}
	h.raw("</main>\n</body>\n</html>\n")
	return h.Flush()
}

// Package page has the page on which people follow the sessions of a server from a browser, answer
// questions and send prompts. It is a client of ACP over WebSocket, at the path /acp of the server
// that serves the page, and shares its look and its helpers with package inspect.
//
// The page is static: HTML, a style and modules of JavaScript below assets. They make elements with
// text in them and never parse HTML, so whatever an agent says is shown as text.
package page

import (
	"cmp"
	"embed"
	"net/http"
	"path"
	"strings"

	"github.com/acp-agent/acp-agent/internal/web"
)

//go:embed assets
var assets embed.FS

// Serve answers with a file of the page.
func Serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "files of the page are only read", http.StatusMethodNotAllowed)
		return
	}
	name := cmp.Or(strings.TrimPrefix(path.Clean(r.URL.Path), "/"), "index.html")
	content, err := assets.ReadFile("assets/" + name)
	if err != nil && (name == "dom.js" || path.Ext(name) == ".css") {
		content, err = web.Asset(name)
	}
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", web.ContentType(name))
	_, _ = w.Write(content) // fails only if the browser has left
}

package serve

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	acpwebsocket "github.com/acp-agent/acp-agent/internal/serve/websocket"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

func withPage(o *Options) { o.Page = true }

// code makes a code for a user.
func (h *host) code(name string, role acp.Role) string {
	h.t.Helper()
	code, err := h.options.Accounts.AddCode(name, role, "phone")
	require.NoError(h.t, err)
	return code
}

// device is what a browser has of a server: what its page keeps, and the cookies that it sends.
type device struct {
	proof   string
	cookies []*http.Cookie
}

// newDevice returns a browser that is not paired.
func newDevice() device { return device{proof: strings.ToLower(rand.Text() + rand.Text())} }

// post sends a request as a page of an origin does.
func (h *host) post(path, origin, body string, d device) *http.Response {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, "http://"+h.address+path,
		strings.NewReader(body))
	require.NoError(h.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(proofHeader, d.proof)
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	for _, c := range d.cookies {
		r.AddCookie(c)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// pair pairs a new device.
func (h *host) pair(name string, role acp.Role) device {
	h.t.Helper()
	return h.pairAgain(newDevice(), name, role)
}

// pairAgain pairs a device that may be paired already.
func (h *host) pairAgain(d device, name string, role acp.Role) device {
	h.t.Helper()
	response := h.post("/pair", "http://"+h.address, `{"code":"`+h.code(name, role)+`"}`, d)
	require.Equal(h.t, http.StatusNoContent, response.StatusCode)
	require.Len(h.t, response.Cookies(), 1)
	return device{d.proof, response.Cookies()}
}

// knows reports whether the page shows what a device may see.
func (h *host) knows(d device) bool {
	h.t.Helper()
	return h.post("/me", "http://"+h.address, "", d).StatusCode == http.StatusOK
}

// A browser is paired by a code that works once, for a short time, and only for the page itself.
func TestPairing(t *testing.T) {
	h := start(t, withPage)
	secret, own := h.add("ana"), "http://"+h.address
	expired, err := h.options.Accounts.AddToken("ana", Token{Kind: Code, Role: acp.RoleFull, Expires: time.Now().Add(-time.Second)})
	require.NoError(t, err)
	code := h.code("ana", acp.RoleAnswer)
	list := h.tokens("ana")
	require.Len(t, list, 2, "what has expired is removed")

	for _, c := range []struct {
		origin, body string
		status       int
	}{
		{"", `{"code":"` + code + `"}`, http.StatusForbidden},
		{"null", `{"code":"` + code + `"}`, http.StatusForbidden},
		{"https://evil.example", `{"code":"` + code + `"}`, http.StatusForbidden},
		{own, `{"code":"` + secret + `"}`, http.StatusUnauthorized},
		{own, `{"code":"` + expired + `"}`, http.StatusUnauthorized},
		{own, `{"code":"ana.x"}`, http.StatusUnauthorized},
		{own, `{"code":"../ana.x"}`, http.StatusUnauthorized},
		{own, `{}`, http.StatusUnauthorized},
		{own, strings.Repeat(" ", 1<<11) + `{}`, http.StatusBadRequest},
		{own, `code=` + code, http.StatusBadRequest},
	} {
		require.Equal(t, c.status, h.post("/pair", c.origin, c.body, newDevice()).StatusCode, "%v", c)
	}
	status, _ := h.get(Path, "Bearer "+code)
	require.Equal(t, http.StatusUnauthorized, status)

	var paired atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, _, err := h.options.Accounts.pair(code, newDevice().proof); err == nil {
				paired.Add(1)
			}
		})
	}
	all.Wait()
	require.Equal(t, int64(1), paired.Load())

	phone := h.pair("ana", acp.RoleAnswer)
	cookie := phone.cookies[0]
	require.True(t, cookie.HttpOnly && cookie.Secure && cookie.SameSite == http.SameSiteStrictMode, cookie)
	require.Equal(t, "/", cookie.Path)
	require.Empty(t, cookie.Domain)
	body, err := io.ReadAll(h.post("/me", own, "", phone).Body)
	require.NoError(t, err)
	require.Contains(t, string(body), `"label":"phone","role":"answer","user":"ana"`)
	status, _ = h.get(Path, "Bearer "+cookie.Value+phone.proof)
	require.Equal(t, http.StatusUnauthorized, status)
	require.Contains(t, h.audit.String(), `"msg":"paired a device","user":"ana"`)
	for _, secret := range []string{code, cookie.Value, phone.proof} {
		require.NotContains(t, h.log.String()+h.audit.String(), strings.TrimPrefix(secret, "ana."))
	}

	h.add("bob")
	other := h.pair("bob", acp.RoleFull)
	again := h.pairAgain(other, "ana", acp.RoleWatch)
	require.Equal(t, cookie.Path, again.cookies[0].Path)
	require.Equal(t, other.cookies[0].Name, again.cookies[0].Name, "a browser has one cookie")
	require.False(t, h.knows(other), "a browser is one device")
	body, err = io.ReadAll(h.post("/me", own, "", phone).Body)
	require.NoError(t, err)
	require.Contains(t, string(body), `"role":"watch"`, "the others are told")

	require.Equal(t, http.StatusForbidden, h.post("/leave", "https://evil.example", "", phone).StatusCode)
	require.Equal(t, http.StatusNoContent, h.post("/leave", own, "", phone).StatusCode)
	require.False(t, h.knows(phone))
}

// The page reads what is stored of its user's sessions, and of nobody else's.
func TestDevicesReadTheirUsersSessions(t *testing.T) {
	h := start(t, withPage)
	own, dir := "http://"+h.address, t.TempDir()
	made := map[string]string{}
	for _, name := range []string{"ana", "bob"} {
		e := connect(t, "ws://"+h.address, h.add(name, dir)).initialize()
		made[name] = e.open(dir).id(t)
	}
	phone := h.pair("ana", acp.RoleWatch)
	status := func(name, origin string, d device) int { return h.post("/api/"+name, origin, "", d).StatusCode }
	require.Equal(t, http.StatusOK, status("sessions", own, phone))
	require.Equal(t, http.StatusOK, status("session?id="+made["ana"], own, phone))
	require.Equal(t, http.StatusNotFound, status("session?id="+made["bob"], own, phone))
	require.Equal(t, http.StatusNotFound, status("context?id="+made["bob"], own, phone))
	require.NotEqual(t, http.StatusOK, status("messages?name=/etc/passwd&from=0", own, phone))
	require.Equal(t, http.StatusNotFound, status("none", own, phone))
	require.Equal(t, http.StatusForbidden, status("sessions", "https://evil.example", phone))
	require.Equal(t, http.StatusForbidden, status("sessions", "", phone))
	require.Equal(t, http.StatusUnauthorized, status("sessions", own, device{phone.proof, nil}))
	require.Equal(t, http.StatusUnauthorized, status("sessions", own, device{newDevice().proof, phone.cookies}))
	code, _ := h.get("/api/sessions", "")
	require.NotEqual(t, http.StatusOK, code)
	body, err := io.ReadAll(h.post("/me", own, "", phone).Body)
	require.NoError(t, err)
	require.Contains(t, string(body), `"within":["`+dir+`"]`)
}

// Whoever listens on another port of the host gets the cookies of the browser, and sends what a
// browser would not. Go's jar of cookies does not tell ports apart either.
func TestOtherPortsGetNoSession(t *testing.T) {
	first, second := start(t, withPage), start(t, withPage)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	at := func(address string) *url.URL { return &url.URL{Scheme: "https", Host: address, Path: "/"} }
	visit := func(h *host, proof string) device { return device{proof, jar.Cookies(at(h.address))} }
	pages := map[*host]string{first: newDevice().proof, second: newDevice().proof}
	for h, proof := range pages {
		h.add("ana")
		jar.SetCookies(at(h.address), h.pairAgain(visit(h, proof), "ana", acp.RoleFull).cookies)
	}
	for h, proof := range pages {
		require.True(t, h.knows(visit(h, proof)), "a second server signs nobody out")
	}

	got := jar.Cookies(at("127.0.0.1:1"))
	require.Len(t, got, 2)
	for h, proof := range pages {
		own := "http://" + h.address
		for _, guess := range []string{"", got[0].Value, got[1].Value, newDevice().proof} {
			thief := device{guess, got}
			for _, c := range got {
				thief.cookies = append(thief.cookies, &http.Cookie{Name: cookieName(guess), Value: c.Value})
				status, _ := h.get(Path, "Bearer "+c.Value+guess)
				require.Equal(t, http.StatusUnauthorized, status)
			}
			require.False(t, h.knows(thief), guess)
			h.post("/leave", own, "", thief)
			h.post("/pair", own, `{"code":"ana.x"}`, thief)
			_, status := h.browser(thief, own)
			require.Equal(t, http.StatusUnauthorized, status, guess)
		}
		require.True(t, h.knows(visit(h, proof)), "others cannot sign a device out")
	}

	code := first.code("ana", acp.RoleFull)
	for _, weak := range []string{"", "short"} {
		response := first.post("/pair", "http://"+first.address, `{"code":"`+code+`"}`, device{proof: weak})
		require.Equal(t, http.StatusBadRequest, response.StatusCode)
	}
	first.post("/leave", "http://"+first.address, "", visit(first, pages[first]))
	require.False(t, first.knows(visit(first, pages[first])))
	require.True(t, second.knows(visit(second, pages[second])))
}

// Some browsers send the cookies of a host to its pages without TLS, which anybody on the way can
// change.
func TestPagesWithoutTLSAreOthers(t *testing.T) {
	for origin, want := range map[string]bool{
		"https://agent.example": true, "http://agent.example": false, "https://evil.example": false,
		"null": false, "": false, "https://agent.example.evil.example": false,
		"https://agent.example:8443": false, "httpsx://agent.example": false,
	} {
		r := httptest.NewRequest(http.MethodPost, "/me", nil)
		r.Host = "agent.example"
		r.Header.Set("Origin", origin)
		require.Equal(t, want, fromPage(r), origin)
		r.Header.Set("Sec-Fetch-Site", "same-site")
		require.False(t, fromPage(r))
	}
}

// A device does not go on as a program of the same user, which may do more.
func TestDevicesResumeNothing(t *testing.T) {
	h := start(t, withPage)
	connect(t, "ws://"+h.address, h.add("ana")).initialize()
	h.mu.Lock()
	ids := slices.Collect(maps.Keys(h.conns))
	h.mu.Unlock()
	require.Len(t, ids, 1)
	paired := h.pair("ana", acp.RoleWatch)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.address+Path, nil)
	require.NoError(t, err)
	r.AddCookie(paired.cookies[0])
	for name, value := range map[string]string{"Origin": "http://" + h.address, "Connection": "Upgrade",
		"Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
		"Sec-WebSocket-Protocol": "acp.v1, " + proofProtocol + paired.proof, "Acp-Connection-Id": ids[0], "Acp-Agent-Received": "0"} {
		r.Header.Set(name, value)
	}
	require.NotEmpty(t, acpwebsocket.ResumedID(r))
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusForbidden, response.StatusCode)
}

// Other sites can neither show the page nor be it, and there is none without the option.
func TestPageIsProtected(t *testing.T) {
	h := start(t, withPage)
	for path, kind := range map[string]string{"/": "html", "/page.js": "javascript", "/dom.js": "javascript", "/style.css": "css"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "localhost:8765"
		h.handler().ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code, path)
		require.Equal(t, "text/"+kind+"; charset=utf-8", w.Header().Get("Content-Type"))
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'")
		require.Equal(t, "DENY", w.Header().Get("X-Frame-Options"))
		require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))

		r.Host = "rebound.example:8765"
		w = httptest.NewRecorder()
		h.handler().ServeHTTP(w, r)
		require.Equal(t, http.StatusMisdirectedRequest, w.Code)
	}
	status, _ := h.get("/../server.go", "")
	require.NotEqual(t, http.StatusOK, status)
	plain := start(t)
	for _, path := range []string{"/", "/page.js"} {
		status, _ := plain.get(path, "")
		require.Equal(t, http.StatusNotFound, status)
	}
	require.Equal(t, http.StatusNotFound, plain.post("/pair", "http://"+plain.address, "{}", newDevice()).StatusCode)
}

// browser connects as the page of a paired browser does.
func (h *host) browser(d device, origin string) (*websocket.Conn, int) {
	h.t.Helper()
	header := http.Header{}
	for _, c := range d.cookies {
		header.Add("Cookie", c.Name+"="+c.Value)
	}
	if origin != "" {
		header.Set("Origin", origin)
	}
	socket, response, err := websocket.Dial(h.t.Context(), "ws://"+h.address+Path,
		&websocket.DialOptions{HTTPHeader: header, Subprotocols: []string{"acp.v1", proofProtocol + d.proof}})
	if err == nil {
		h.t.Cleanup(func() { _ = socket.CloseNow() })
	}
	return socket, response.StatusCode
}

// ask sends a request, and returns the answer.
func ask(t *testing.T, socket *websocket.Conn, id int, method, params string) answer {
	t.Helper()
	require.NoError(t, socket.Write(t.Context(), websocket.MessageText,
		fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)))
	for {
		_, message, err := socket.Read(t.Context())
		require.NoError(t, err)
		var a answer
		require.NoError(t, json.Unmarshal(message, &a))
		if a.Method == "" && string(a.ID) == fmt.Sprint(id) {
			return a
		}
	}
}

func TestDevicesMayDoWhatTheirRoleSays(t *testing.T) {
	h := start(t, withPage)
	cwd := t.TempDir()
	editor := connect(t, "ws://"+h.address, h.add("ana", cwd)).initialize()
	made := editor.open(cwd).id(t)
	own := "http://" + h.address
	for role, prompts := range map[acp.Role]bool{acp.RoleWatch: false, acp.RoleAnswer: false, acp.RoleFull: true} {
		paired := h.pair("ana", role)
		for origin, status := range map[string]int{"": 401, "https://evil.example": 403, "null": 403} {
			_, got := h.browser(paired, origin)
			require.Equal(t, status, got, origin)
		}
		socket, _ := h.browser(paired, own)
		require.Empty(t, ask(t, socket, 1, "initialize", `{"protocolVersion":1}`).Error)
		require.Contains(t, string(ask(t, socket, 2, "session/list", `{}`).Result), made)
		load := ask(t, socket, 3, "session/load", `{"sessionId":"`+made+`","cwd":"`+cwd+`","mcpServers":[]}`)
		require.Empty(t, load.Error)
		require.NotEmpty(t, ask(t, socket, 4, "session/load", `{"sessionId":"none","cwd":"/","mcpServers":[]}`).Error)
		prompt := ask(t, socket, 5, "session/prompt",
			`{"sessionId":"`+made+`","prompt":[{"type":"text","text":"/help"}]}`)
		require.Equal(t, prompts, prompt.Error.Message == "", prompt.Error)
		if !prompts {
			require.Contains(t, prompt.Error.Message, "does not let this device call")
			for _, method := range []string{"session/new", "session/delete", "session/fork", "logout", "session/set_mode",
				"session/set_title", "_other"} {
				refused := ask(t, socket, 6, method, `{"sessionId":"`+made+`","cwd":"`+cwd+`","mcpServers":[]}`)
				require.Contains(t, refused.Error.Message, "does not let this device call", method)
			}
		}
		require.Equal(t, 204, h.post("/leave", own, "", paired).StatusCode)
		_, _, err := socket.Read(t.Context()) // it is signed out
		for err == nil {
			_, _, err = socket.Read(t.Context())
		}
	}
	h.add("bob", cwd)
	socket, _ := h.browser(h.pair("bob", acp.RoleFull), own)
	require.Empty(t, ask(t, socket, 1, "initialize", `{"protocolVersion":1}`).Error)
	require.NotContains(t, string(ask(t, socket, 2, "session/list", `{}`).Result), made)
	for _, method := range []string{"session/load", "session/resume", "session/status", "session/prompt"} {
		refused := ask(t, socket, 3, method, `{"sessionId":"`+made+`","cwd":"`+cwd+`","mcpServers":[],"prompt":[]}`)
		require.NotEmpty(t, refused.Error.Message, "%s in a session of another user", method)
	}
	editor.lives()
}

// Somebody who may do everything reads, sends, stops and answers on the page. What is done there is
// in testdata/node-browser/client.mjs. Clauses N8, S12.
func TestPageInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	npmtest.File(t, "testdata/node-browser", "@sparticuz/chromium/package.json")
	script := filepath.Join(filepath.Dir(npmtest.File(t, "testdata/node-browser", "")), "client.mjs")
	w := newWalk(t)
	w.keep()
	// The session that asks is the first of many that are open.
	for range 24 {
		w.editor.open(w.cwd)
	}
	w.files = []string{"asked.md", "stopped.md"}
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "asks", "method": "session/prompt", "params": w.writing()})
	require.NoError(t, err)
	w.editor.send(string(line))
	w.add("eve", w.cwd)
	asks := w.writing()["prompt"].([]any)[0].(map[string]string)["text"]
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // the browser may hang
	defer cancel()
	browser := exec.CommandContext(ctx, npmtest.Node(t), script,
		PairingLink("http://"+w.address, w.code("ana", acp.RoleFull)), PairingLink("http://"+w.address, w.code("eve", acp.RoleFull)), asks,
		PairingLink("http://"+w.address, w.code("ana", acp.RoleFull)))
	browser.Env = append(browser.Environ(), "HOME="+t.TempDir())
	browser.WaitDelay = time.Second
	out, err := browser.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// keep stores sessions that nobody has opened here: one with all that a conversation has, and many.
func (w *walk) keep() {
	w.t.Helper()
	store := w.options.Store.For("ana")
	shared := filepath.Join(w.cwd, "shared")
	require.NoError(w.t, os.Mkdir(shared, 0o700))
	roots, err := workspace.NewRoots(w.cwd, []string{shared})
	require.NoError(w.t, err)
	roots = roots.ReadOnlyAt([]string{shared})
	keys := sessionstore.Keys{Roots: roots, Real: []workspace.Dir{workspace.Real(roots.Cwd()), workspace.Real(roots.Additional().At(0))}}
	agent := sessionstore.Agent{Kind: "model"}
	var old []sessionstore.Session
	for i := range 90 {
		old = append(old, sessionstore.Session{ID: sessionstore.ID(fmt.Sprint("old", i)), StateKey: fmt.Sprint(i), Keys: keys,
			Title: fmt.Sprint("Session ", i), Updated: time.Now().Add(-time.Duration(i) * time.Hour)})
	}
	_, err = store.Import(w.t.Context(), agent, old, false)
	require.NoError(w.t, err)
	lease, err := store.Create(w.t.Context(), sessionstore.Session{ID: "rich", Agent: agent, Keys: keys})
	require.NoError(w.t, err)
	number, err := store.BeginTurn(w.t.Context(), lease, sessionstore.Turn{Title: "Rich", Prompt: said(w.t, "user_message_chunk", "Show all")})
	require.NoError(w.t, err)
	answer := "# Title\n\n**strong** and ~~struck~~\n\n- one\n  - two\n- [x] done\n\n3. three\n4. four\n\n| a | b |\n|---|--:|\n| c | 1 |\n\n```go\nx := 1\n```\n"
	updates := append(said(w.t, "agent_message_chunk", answer), parsed(w.t, `{"sessionUpdate":"tool_call","toolCallId":"1","title":"Edit a.go",`+
		`"status":"completed","content":[{"type":"diff","path":"/a.go","oldText":"a\n","newText":"a\nb\n"}]}`))
	require.NoError(w.t, store.Append(w.t.Context(), lease, updates))
	require.NoError(w.t, store.EndTurn(w.t.Context(), lease, number))
}

func parsed(t *testing.T, update string) sessionstore.Update {
	t.Helper()
	u, err := sessionstore.ParseUpdate([]byte(`{"update":` + update + `}`))
	require.NoError(t, err)
	return u
}

func said(t *testing.T, kind, text string) []sessionstore.Update {
	t.Helper()
	quoted, err := json.Marshal(text)
	require.NoError(t, err)
	return []sessionstore.Update{parsed(t, `{"sessionUpdate":"`+kind+`","content":{"type":"text","text":`+string(quoted)+`}}`)}
}

// show shows an update.
func show(ctx context.Context, to backend.Updates, update string) error {
	u, err := sessionstore.ParseUpdate([]byte(`{"update":` + update + `}`))
	if err != nil {
		return err
	}
	return to.Update(ctx, u)
}

// wait calls a tool and goes on until it is told to end.
func (f failingSession) wait(ctx context.Context, u backend.Updates) (backend.Raw, error) {
	err := show(ctx, u, `{"sessionUpdate":"tool_call","toolCallId":"r","title":"Read main.go","status":"in_progress"}`)
	if err == nil {
		<-ctx.Done()
	}
	return backend.Raw(`{"stopReason":"cancelled"}`), err
}

// ask announces a tool call and asks about it without saying again what it is, as many agents do.
func (f failingSession) ask(ctx context.Context, u backend.Updates) (backend.Raw, error) {
	err := show(ctx, u, `{"sessionUpdate":"tool_call","toolCallId":"e","title":"Edit b.go","kind":"edit",`+
		`"status":"pending","locations":[{"path":"/src/b.go"}],"rawInput":{"command":"go generate"},`+
		`"content":[{"type":"diff","path":"/src/b.go","oldText":"a\n","newText":"a\nnew line\n"}]}`)
	if err != nil {
		return nil, err
	}
	_, err = f.host.Call(ctx, "session/request_permission", backend.Raw(`{"toolCall":{"toolCallId":"e"},`+
		`"options":[{"optionId":"y","kind":"allow_once","name":"Yes"},{"optionId":"n","kind":"reject_once","name":"No"}]}`))()
	return backend.Raw(`{"stopReason":"end_turn"}`), err
}

// stream says 100 paragraphs in 500 pieces, and calls a tool now and then, so that it is shown in
// several parts.
func (f failingSession) stream(ctx context.Context, u backend.Updates) (backend.Raw, error) {
	goesOn := " goes on" + strings.Repeat(" and on", 150) + ","
	for i := range 500 {
		if i%130 == 0 {
			call := fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"s%d","title":"Look","status":"completed"}`, i)
			if err := show(ctx, u, call); err != nil {
				return nil, err
			}
		}
		piece := []string{fmt.Sprintf("Paragraph %d", i/5), " begins,", goesOn, goesOn, ` ends.\n\n`}[i%5]
		if err := show(ctx, u, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"`+piece+`"}}`); err != nil {
			return nil, err
		}
		time.Sleep(4 * time.Millisecond) // slower than the page looks for news
	}
	return backend.Raw(`{"stopReason":"end_turn"}`), nil
}

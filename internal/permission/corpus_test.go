package permission

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/internal/test/tabletest"
)

// ground has the folders of a session, and something outside of them.
type ground struct {
	root, other, out string
	place            Place
}

func newGround(t testing.TB) ground {
	t.Helper()
	top := dirtest.New(t, "shop/a.txt", "a\n", "shop/sub/b.txt", "b\n", "shop/secrets/key", "k\n",
		"shop/.env", "TOKEN=x\n", "shop/AGENTS.md", "x\n", "shop/run.sh", "#!/bin/sh\n", "lib/o.txt", "o\n",
		"shop-evil/e.txt", "e\n", "out/secret.txt", "1234\n")
	g := ground{root: filepath.Join(top, "shop"), other: filepath.Join(top, "lib"), out: filepath.Join(top, "out")}
	for link, to := range map[string]string{"link": g.out + "/secret.txt", "linkdir": g.out, "envlink": g.root + "/.env",
		"keys": g.root + "/secrets"} {
		require.NoError(t, os.Symlink(to, filepath.Join(g.root, link)))
	}
	require.NoError(t, os.Link(filepath.Join(g.out, "secret.txt"), filepath.Join(g.root, "hard")))
	require.NoError(t, exec.Command("git", "-C", g.root, "init", "-q").Run())
	w := roottest.Open(t, g.root, g.other)
	catalog, err := discovery.Scan(t.Context(), w)
	require.NoError(t, err)
	g.place = At(w)
	g.place.Catalog = catalog
	g.place.Server = func(name string) string { return map[string]string{"db": "1", "plugin:x": "2"}[name] }
	return g
}

// expand replaces the names of the folders in a text.
func (g ground) expand(s string) string {
	return strings.NewReplacer("{root}", g.root, "{other}", g.other, "{out}", g.out).Replace(s)
}

const options = `[{"optionId":"o","kind":"allow_once","name":"Yes"},{"optionId":"a","kind":"allow_always","name":"Always"},` +
	`{"optionId":"r","kind":"reject_once","name":"No"}]`

// ask returns the action of a request with this toolCall, after announcements of it.
func (g ground) ask(t testing.TB, agent, call string, announced ...string) Action {
	t.Helper()
	if !strings.Contains(call, `"toolCallId"`) {
		call = strings.Replace(call, "{", `{"toolCallId":"t",`, 1)
	}
	return g.request(t, agent, `{"sessionId":"s","toolCall":`+call+`,"options":`+options+`}`, announced...)
}

func (g ground) request(t testing.TB, agent, params string, announced ...string) Action {
	t.Helper()
	r, err := ParseRequest(json.RawMessage(g.expand(params)))
	if err != nil {
		return Action{Unclear: err.Error()}
	}
	r.Agent = agent
	var before Call
	for _, update := range announced {
		require.NoError(t, json.Unmarshal([]byte(g.expand(update)), &before), update)
	}
	return r.Action(context.Background(), before, g.place)
}

// rules returns the rules of texts that begin with allow, ask or deny.
func (g ground) rules(t testing.TB, texts ...string) Rules {
	t.Helper()
	var p Permissions
	for _, text := range texts {
		effect, rule, _ := strings.Cut(g.expand(text), " ")
		switch Effect(effect) {
		case Allow:
			p.Allow = append(p.Allow, rule)
		case Ask:
			p.Ask = append(p.Ask, rule)
		case Deny:
			p.Deny = append(p.Deny, rule)
		}
	}
	rules, err := p.Rules()
	require.NoError(t, err)
	return rules
}

func command(line string) string {
	raw, _ := json.Marshal(map[string]any{"toolCallId": "t", "kind": "execute", "rawInput": map[string]string{"command": line}})
	return string(raw)
}

// wide are rules that allow as much as rules can.
var wide = []string{"allow read", "allow edit", "allow run git ...", "allow run go ...", "allow run cat ...", "allow run ls ...",
	"allow run rg ...", "allow run find ...", "allow run make ...", "allow run sort ...", "allow run ./run.sh", "allow run sh run.sh",
	"allow run npx x", "allow fetch docs.example.com", "allow tool db.*", "allow tool gh.query"}

// bypasses returns command lines that have fooled other programs, by the class of the trick. Each
// hides what comes before the first "|": a deny rule for these words must find them, unless they
// are "-".
func bypasses(t testing.TB) map[string][]string {
	all := tabletest.Read(t, "bypasses.txt")
	all["too long"] = []string{"touch x|" + strings.Repeat("git status; ", 51) + "touch x",
		"touch x|touch x" + strings.Repeat(" y", 2000)}
	return all
}

// Nothing that is known to pass the rules of other programs passes these, and what it hides is
// found.
//
// Clause R2.
func TestPolicyCorpus(t *testing.T) {
	g := newGround(t)
	allowed := g.rules(t, wide...)
	for class, lines := range bypasses(t) {
		t.Run(class, func(t *testing.T) {
			for _, both := range lines {
				hidden, line, _ := strings.Cut(g.expand(both), "|")
				for _, dir := range []string{"", g.root} {
					call := command(line)
					if dir != "" {
						call = strings.Replace(call, `"rawInput":{`, `"rawInput":{"cwd":"`+dir+`",`, 1)
					}
					action := g.ask(t, "", call)
					require.Equal(t, Ask, Decide(action, allowed).Effect, "%q", line)
					if hidden != "-" {
						denied := allowed.With(g.rules(t, "deny run "+hidden+" ..."))
						require.Equal(t, Deny, Decide(action, denied).Effect, "%q hides %q", line, hidden)
					}
				}
			}
		})
	}
}

// What a repository configures does not run because of a rule.
//
// Clause R1.
func TestPolicyCorpusOfRepositories(t *testing.T) {
	for name, plant := range map[string]func(g ground) error{
		"hook": func(g ground) error {
			return os.WriteFile(filepath.Join(g.root, ".git", "hooks", "post-index-change"), []byte("#!/bin/sh\n"), 0o755)
		},
		"another repository": func(g ground) error { return os.RemoveAll(filepath.Join(g.root, ".git")) },
		"bare repository":    func(g ground) error { return os.WriteFile(filepath.Join(g.root, "sub", "HEAD"), nil, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			rules := g.rules(t, "allow run git ...", "allow run git status")
			call := commandIn("git status", filepath.Join(g.root, "sub"))
			require.Equal(t, Allow, Decide(g.ask(t, "", call), rules).Effect)
			require.NoError(t, plant(g))
			require.Equal(t, Ask, Decide(g.ask(t, "", call), rules).Effect)
		})
	}
}

// Without a catalog nobody knows what instructions include, so each edit is asked about.
//
// Clause R1.
func TestBarePlace(t *testing.T) {
	g := newGround(t)
	g.place = At(g.place.Workspace)
	for call, risky := range map[string]bool{`{"kind":"edit","rawInput":{"file_path":"{root}/a.txt","content":"x"}}`: true,
		`{"kind":"read","rawInput":{"file_path":"{out}/secret.txt"}}`: false, command("cat a.txt"): false} {
		a := g.ask(t, "", call)
		require.Equal(t, risky, len(a.Files) > 0 && a.Files[0].Risk != "", call)
	}
}

// A script is known by the beginning of the file and of each part that is replaced.
//
// Clause R1.
func TestPartsOfScripts(t *testing.T) {
	g := newGround(t)
	require.NoError(t, os.WriteFile(filepath.Join(g.root, "run"), []byte("#!/bin/sh\nmake\n"), 0o600))
	const diff = `{"type":"diff","path":"{root}/FILE","oldText":"OLD","newText":"NEW"}`
	part := func(file, old, text string) string {
		return strings.NewReplacer("FILE", file, "OLD", old, "NEW", text).Replace(diff)
	}
	for _, c := range []struct {
		parts []string
		want  Effect
	}{
		{[]string{part("a.txt", "a", "b")}, Allow},
		{[]string{part("run", "make", "make all")}, Ask},
		{[]string{part("a.txt", "a", "b"), part("a.txt", "c", "#!/bin/sh")}, Ask},
		{[]string{part("a.txt", "a", "b"), part("a.txt", "#!/bin/sh", "c")}, Ask},
	} {
		call := `{"kind":"edit","content":[` + strings.Join(c.parts, ",") + `]}`
		require.Equal(t, c.want, Decide(g.ask(t, "", call), g.rules(t, "allow edit")).Effect, call)
		relative := strings.ReplaceAll(call, "{root}/", "")
		require.Equal(t, Ask, Decide(g.ask(t, "", relative), g.rules(t, "allow edit")).Effect, relative)
	}
}

// Clause R2.
func TestFilesOfRequests(t *testing.T) {
	g := newGround(t)
	for heading, lines := range tabletest.Read(t, "files.txt") {
		written, want, _ := strings.Cut(heading, ": ")
		rules := g.rules(t, append(strings.Split(written, ", "), "allow fetch example.com")...)
		for _, line := range lines {
			kind, path, _ := strings.Cut(line, " ")
			for name, call := range map[string]string{
				"location": `{"kind":"KIND","locations":[{"path":"PATH"}]}`,
				"input":    `{"kind":"KIND","rawInput":{"file_path":"PATH"}}`,
				"both":     `{"kind":"KIND","rawInput":{"filePath":"PATH"},"locations":[{"path":"PATH","line":3}]}`,
			} {
				call = strings.NewReplacer("KIND", kind, "PATH", path).Replace(call)
				got := Decide(g.ask(t, "", call), rules)
				require.Equal(t, Effect(want), got.Effect, "%s of %s as %s with %q: %v", kind, path, name, written, got)
			}
		}
	}
}

// Files that a command names are found by rules about files, too.
//
// Clause R2.
func TestDeniedFilesOfCommands(t *testing.T) {
	g := newGround(t)
	rules := g.rules(t, "allow run cat ...", "deny read **/.env", "deny edit secrets/**")
	var many string
	for i := range 3000 {
		many += " " + strconv.Itoa(i)
	}
	for line, want := range map[string]Effect{
		"cat a.txt": Allow, "cat .env": Deny, "cat ./.env": Deny, "cat {root}/.env": Deny, "cat envlink": Deny, "cat a.txt; cat '.env'": Deny,
		"cat sub/../.env": Deny, "sh -c 'cat .env'": Deny, "cp a.txt secrets/key": Deny, "tee <a.txt secrets/new": Deny, "cat keys/key": Deny,
		"cat --x=.env": Deny, "cat .e''nv": Deny, "cat '.e'nv": Deny, `sh -c "cat .e''nv"`: Deny,
		"cat" + strings.Repeat(" a.txt b.txt", 40) + " .env": Deny, "cat" + many + " .env": Deny, "cat" + many: Ask,
	} {
		require.Equal(t, want, Decide(g.ask(t, "", command(g.expand(line))), rules).Effect, line)
	}
}

// A link outside of the folders leads to files in them, also to those that do not exist yet.
//
// Clause R5.
func TestLinksFromOutside(t *testing.T) {
	g := newGround(t)
	for link, to := range map[string]string{"alias": "../shop/secrets", "dangling": "../shop/secrets/new"} {
		require.NoError(t, os.Symlink(to, filepath.Join(g.out, link)))
	}
	rules := g.rules(t, "deny edit secrets/**", "deny read secrets/**")
	for _, name := range []string{"alias/key", "alias/new", "alias/deep/new", "dangling", "dangling/x"} {
		name = filepath.Join(g.out, name)
		require.Equal(t, Deny, Decide(g.place.Access(Edit, name), rules).Effect, name)
		require.Equal(t, Deny, Decide(g.ask(t, "", command("tee "+name)), rules).Effect, name)
		for _, kind := range []string{"edit", "read", "delete", "other"} {
			call := `{"kind":"` + kind + `","rawInput":{"path":"` + name + `"}}`
			require.Equal(t, Deny, Decide(g.ask(t, "", call), rules).Effect, call)
		}
	}
}

// Clause R2.
func TestHosts(t *testing.T) {
	g := newGround(t)
	fetch := func(url string) string {
		raw, _ := json.Marshal(map[string]any{"kind": "fetch", "rawInput": map[string]any{"url": url, "prompt": "What?"}})
		return string(raw)
	}
	rules := g.rules(t, "allow fetch docs.example.com", "allow fetch *.wiki.org")
	for want, addresses := range tabletest.Read(t, "addresses.txt") {
		for _, url := range addresses {
			require.Equal(t, Effect(want), Decide(g.ask(t, "", fetch(url)), rules).Effect, "%q", url)
		}
	}
	deny := g.rules(t, "allow fetch docs.example.com", "deny fetch evil.com", "deny fetch *.bad.org")
	for call, want := range map[string]Effect{
		fetch("https://evil.com/"): Deny, fetch("https://EVIL.com./x"): Deny, fetch("https://docs.example.com@evil.com/"): Deny,
		fetch("https://evil.com:8443/"): Deny, fetch("https://notevil.com/"): Ask, fetch("https://evil.community/"): Ask,
		fetch("https://x.bad.org/"): Deny, fetch("https://docs.example.com/"): Allow,
		command("curl https://evil.com/x"): Deny, command("curl evil.com"): Deny,
	} {
		require.Equal(t, want, Decide(g.ask(t, "", call), deny).Effect, call)
	}
}

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
	g.place = Place{Workspace: w, Catalog: catalog,
		Inside: func(path string) error { return HandOver(w, path) },
		Server: func(name string) string { return map[string]string{"db": "1", "plugin:x": "2"}[name] }}
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
		var c Call
		require.NoError(t, json.Unmarshal([]byte(g.expand(update)), &c), update)
		before = before.With(c)
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

// bypasses are command lines that have fooled other programs, by the class of the trick. Each hides
// what comes before the first "|": a deny rule for these words must find them, unless they are "-".
var bypasses = map[string][]string{
	"second command": {
		"touch x|git status; touch x", "touch x|git status && touch x", "touch x|git status || touch x", "touch x|git status | touch x",
		"touch x|git status |& touch x", "touch x|git status & touch x", "touch x|git status\ntouch x", "touch x|git status\rtouch x",
		"touch x|git status # y\ntouch x", "-|git sta\\\ntus", "touch x|(touch x)", "touch x|{ touch x; }", "touch x|! touch x",
	},
	"too many parts": {"touch x|" + strings.Repeat("git status; ", 51) + "touch x"},
	"substitution": {
		"touch x|git log --grep=`touch x`", "touch x|git log --grep=$(touch x)", `touch x|git log --grep="$(touch x)"`,
		"touch x|git log \"--grep=`touch x`\"", "touch x|$(touch x)", "touch x|cat <(touch x)", "touch x|cat >(touch x)",
		"-|cat << x\nx",
	},
	"expansion": {
		"touch x|touch$IFS x", "-|cat ${v@P}", "-|cat ${v:=x}", "-|cat ${!v}", "-|cat ${a[${b}]}", "-|cat $'\\x41'", "touch x|{touch,x}",
		"-|cat ~root", "-|cat *", "-|cat ?.txt", `touch x|t\ouch x`, "touch x|'t'ouch \"x\"", "touch x|\"touch\" x",
	},
	"hidden words": {
		"touch x|t$@ouch x", "touch x|t${y}ouch x", "touch x|touch$y x", "touch x|$'\\x74ouch' x", "touch x|t$()ouch x", "touch x|t``ouch x",
		"touch x|sh -c 't\"\"ouch x'", `touch x|sh -c "sh -c 'to''uch x'"`, `touch x|sh -c "sh -c \"t\\\\ouch x\""`, "touch x|/usr/bin/t?uch x", "touch x|[t]ouch x",
		`touch x|echo -e '\u0074ouch x' | sh`, "touch x|touch [x]*", "touch x|eval 'tou''ch' x", "touch x|touch x" + strings.Repeat(" y", 2000),
	},
	"redirection": {
		"-|cat a.txt > {out}/x", "-|cat a.txt >> x", "-|cat a.txt >| x", "-|cat a.txt &> x", "-|cat a.txt 2> x", "-|cat a.txt >! x",
		"touch x|touch >y x", "-|cat < {out}/secret.txt",
	},
	"assignment before": {
		"git log|GIT_PAGER=x git log", "go test|PATH=. go test", "ls|LD_PRELOAD=./x ls", "go test|export PATH=.; go test",
		"go test|typeset -x PATH=. && go test",
	},
	"wrapper": {
		"touch x|env touch x", "touch x|env -S 'touch x'", "touch x|timeout 5 touch x", "touch x|nice touch x", "touch x|nohup touch x",
		"touch x|stdbuf -o0 touch x", "touch x|time touch x", "touch x|xargs touch x", "touch x|sudo touch x", "touch x|busybox touch x",
		"touch x|docker exec c touch x", "touch x|bash -c 'touch x'", "touch x|sh -xc \"touch x\"", "touch x|/bin/bash -lc 'cd y && touch x'",
		"touch x|python -c 'import os; os.system(\"touch x\")'", "touch x|/usr/bin/touch x", "touch x|TOUCH x", "npx y|npx y",
	},
	"option that runs": {
		"touch x|find . -exec touch x ';'", "-|find . -delete", "-|rg --pre=./run.sh needle", "git -c|git -c core.fsmonitor=./run.sh status",
		"-|git grep --open=./run.sh needle", "-|git grep -O./run.sh needle", "-|sort -o x a.txt", "-|sort --compress-prog=./run.sh a.txt",
		"-|tar cf x --checkpoint-action=exec=./run.sh a.txt", "-|sed -i 1d a.txt", "-|awk 1 a.txt", "-|yarn plugin import x",
		"-|go test -exec ./run.sh", "-|go build -o {out}/x", "-|make check SHELL=./run.sh", "git push|git -C . push",
	},
	"path spelling": {
		"-|cat ../out/secret.txt", "-|cat {root}-evil/e.txt", "-|cat '{out}/secret.txt'", "-|cat ~/x", "-|cat /proc/self/root/etc/passwd",
		"-|cat /dev/fd/0", "-|cat //{out}/secret.txt", "-|cat sub/../../out/secret.txt", "-|cat a.txt/../../out/secret.txt",
	},
	"links":     {"-|cat link", "-|cat linkdir/secret.txt", "-|cat hard", "-|ls linkdir/"},
	"directory": {"touch x|cd sub && touch x", "-|cd {out} && cat secret.txt", "-|pushd {out}; ls"},
	"parser differs from shell": {
		"-|git status ^& calc", "-|git status \u00a0x", "-|git status \u200b", "-|cat 'a", `-|cat "a`, "-|cat a\x00b", "-|git log é",
	},
}

// Nothing that is known to pass the rules of other programs passes these, and what it hides is
// found.
//
// Clause R2.
func TestPolicyCorpus(t *testing.T) {
	g := newGround(t)
	allowed := g.rules(t, wide...)
	for class, lines := range bypasses {
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
		"fsmonitor": func(g ground) error {
			return exec.Command("git", "-C", g.root, "config", "core.fsmonitor", "./run.sh").Run()
		},
		"hooks elsewhere": func(g ground) error {
			return exec.Command("git", "-C", g.root, "config", "core.hooksPath", "hooks").Run()
		},
		"hook": func(g ground) error {
			return os.WriteFile(filepath.Join(g.root, ".git", "hooks", "post-index-change"), []byte("#!/bin/sh\n"), 0o755)
		},
		"diff.external": func(g ground) error {
			return exec.Command("git", "-C", g.root, "config", "diff.external", "./run.sh").Run()
		},
		"another repository": func(g ground) error { return os.RemoveAll(filepath.Join(g.root, ".git")) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			rules := g.rules(t, "allow run git ...", "allow run git status")
			require.Equal(t, Allow, Decide(g.ask(t, "", command("git status")), rules).Effect)
			require.NoError(t, plant(g))
			require.Equal(t, Ask, Decide(g.ask(t, "", command("git status")), rules).Effect)
		})
	}
	g := newGround(t)
	for name, content := range map[string]string{"HEAD": "ref: refs/heads/x\n", "config": "[core]\nfsmonitor=./run.sh\n", "objects/x": "", "refs/x": ""} {
		path := filepath.Join(g.root, "sub", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	call := `{"toolCallId":"t","kind":"execute","rawInput":{"command":"git status","cwd":"{root}/sub"}}`
	require.Equal(t, Ask, Decide(g.ask(t, "", call), g.rules(t, "allow run git ...")).Effect, "git would use the bare repository")
}

// paths are files of an edit or a read, and what is decided about them.
var filesTable = []struct{ kind, path, rules, want string }{
	{"edit", "{root}/a.txt", "allow edit", "allow"},
	{"edit", "{root}/new.txt", "allow edit", "allow"},
	{"edit", "{root}/new/dir/new.txt", "allow edit", "allow"},
	{"edit", "{other}/o.txt", "allow edit *.txt", "allow"},
	{"edit", "{root}/sub/b.txt", "allow edit sub/**", "allow"},
	{"edit", "{root}/a.txt", "allow edit sub/**", "ask"},
	{"edit", "{root}/sub/../a.txt", "allow edit sub/**", "ask"},
	{"edit", "{root}/sub/../sub/b.txt", "allow edit sub/**", "allow"},
	{"edit", "{root}/keys/key", "allow edit keys/**", "ask"},    // the link matches, the target does not
	{"edit", "{root}/keys/key", "allow edit secrets/**", "ask"}, // and the other way round
	{"edit", "{root}/a.txt", "allow read", "ask"},               // another verb
	{"edit", "{root}/link", "allow edit", "ask"},                // to the outside
	{"edit", "{root}/linkdir/x.txt", "allow edit", "ask"},       // through a link
	{"edit", "{root}/linkdir/new/x.txt", "allow edit", "ask"},   // a new folder there
	{"edit", "{root}/hard", "allow edit", "ask"},                // has another name outside
	{"edit", "{out}/secret.txt", "allow edit", "ask"},           //
	{"edit", "{root}-evil/e.txt", "allow edit", "ask"},          // a prefix of the name
	{"edit", "{root}/../out/secret.txt", "allow edit", "ask"},   //
	{"edit", "a.txt", "allow edit", "ask"},                      // relative to what?
	{"edit", "{root}/a.txt\\n{out}/x", "allow edit", "ask"},     // two paths
	{"edit", "{root}/a.txt, {out}/x", "allow edit", "ask"},
	{"edit", "{root}/a.txt,{out}/x", "allow edit", "ask"},
	{"edit", "~/x", "allow edit", "ask"},                          //
	{"edit", "/proc/self/root{root}/a.txt", "allow edit", "ask"},  //
	{"edit", "{root}/AGENTS.md", "allow edit", "ask"},             // agents obey it
	{"edit", "{root}/.claude/settings.json", "allow edit", "ask"}, // its own settings
	{"edit", "{root}/.git/config", "allow edit **", "ask"},        //
	{"edit", "{root}/Makefile", "allow edit", "ask"},              //
	{"edit", "{root}/run.sh", "allow edit", "ask"},                // a program
	{"delete", "{root}/a.txt", "allow edit", "ask"},
	{"move", "{root}/a.txt", "allow edit", "ask"},
	{"edit", "{root}/secrets/key", "deny edit secrets/**", "deny"},
	{"edit", "{root}/keys/key", "deny edit secrets/**", "deny"}, // through a link
	{"edit", "{root}/keys/key", "deny edit keys/**", "deny"},
	{"edit", "{root}/SECRETS/key", "deny edit secrets/**", "deny"},
	{"edit", "{root}/secrets./key", "deny edit secrets/**", "deny"},
	{"edit", "{root}/./secrets//key", "deny edit secrets/**", "deny"},
	{"delete", "{root}/secrets/key", "deny edit secrets/**", "deny"},
	{"edit", "{root}/sub/../secrets/new", "deny edit secrets/**", "deny"},
	{"edit", "{root}/a.txt", "deny edit", "deny"},
	{"edit", "{out}/secret.txt", "deny edit", "deny"},
	{"read", "{root}/a.txt", "allow read", "allow"},
	{"search", "{root}/sub", "allow read sub", "allow"},
	{"read", "{root}/a.txt", "allow edit", "ask"},
	{"read", "{root}/link", "allow read", "ask"},
	{"read", "{root}/envlink", "deny read **/.env", "deny"},
	{"read", "{root}/.ENV", "deny read **/.env", "deny"},
	{"other", "{root}/.env", "deny read **/.env", "deny"}, // a kind that tells nothing
	{"read", "{root}/a.txt", "deny read **/.env", "ask"},
	{"search", "{root}/sub", "allow read, deny read **/.env", "ask"}, // which may be in there
	{"search", "{root}/sub", "allow read, deny read secrets/**", "allow"},
	{"search", "{root}", "allow read, ask read secrets/**", "ask"},
	{"search", "{root}/keys", "allow read, deny read secrets/k*", "ask"}, // a link to it
	{"search", "{root}/SECRETS/..", "allow read, deny read secrets/**", "ask"},
	{"switch_mode", "{root}/a.txt", "allow read", "ask"},
	{"think", "{root}/a.txt", "allow read", "ask"},
	{"other", "{root}/a.txt", "allow read", "ask"},
	{"", "{root}/a.txt", "allow edit", "ask"},
	{"Edit", "{root}/a.txt", "allow edit", "ask"},
}

// Clause R2.
func TestFilesOfRequests(t *testing.T) {
	g := newGround(t)
	for _, c := range filesTable {
		for name, call := range map[string]string{
			"location": `{"kind":"KIND","locations":[{"path":"PATH"}]}`,
			"input":    `{"kind":"KIND","rawInput":{"file_path":"PATH"}}`,
			"both":     `{"kind":"KIND","rawInput":{"filePath":"PATH"},"locations":[{"path":"PATH","line":3}]}`,
		} {
			call = strings.NewReplacer("KIND", c.kind, "PATH", c.path).Replace(call)
			got := Decide(g.ask(t, "", call), g.rules(t, append(strings.Split(c.rules, ", "), "allow fetch example.com")...))
			if name == "input" && c.path == "a.txt" {
				require.Equal(t, Ask, got.Effect)
				continue
			}
			require.Equal(t, Effect(c.want), got.Effect, "%s of %s as %s with %q: %v", c.kind, c.path, name, c.rules, got)
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

// Clause R2.
func TestHosts(t *testing.T) {
	g := newGround(t)
	fetch := func(url string) string {
		raw, _ := json.Marshal(map[string]any{"kind": "fetch", "rawInput": map[string]any{"url": url, "prompt": "What?"}})
		return string(raw)
	}
	for url, want := range map[string]Effect{
		"https://docs.example.com/a?b#c": Allow, "http://docs.example.com": Allow, "https://DOCS.example.com/": Allow,
		"https://docs.example.com.evil.com/": Ask, "https://evil.com/docs.example.com": Ask, "https://docs.example.com@evil.com/": Ask,
		"https://evil.com#docs.example.com": Ask, "https://docs.example.com:8443/": Ask, "https://docs.example.com:/": Ask,
		"https://docs.example.com./": Ask, "https://user@docs.example.com/": Ask, "ftp://docs.example.com/": Ask, "docs.example.com": Ask,
		"https://x.docs.example.com/": Ask, "https://docs.example.com\\@evil.com/": Ask, "https://docs.example.com\x00.evil.com/": Ask,
		"https://docs.example.com%00.evil.com/": Ask, "https://docs\u3002example.com/": Ask, "//docs.example.com/": Ask, "": Ask,
		"https://a.wiki.org/": Allow, "https://b.a.wiki.org/": Allow, "https://wiki.org/": Ask, "https://evilwiki.org/": Ask,
	} {
		rules := g.rules(t, "allow fetch docs.example.com", "allow fetch *.wiki.org")
		require.Equal(t, want, Decide(g.ask(t, "", fetch(url)), rules).Effect, "%q", url)
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

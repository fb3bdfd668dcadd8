package permission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/permission/commandline"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/test/tabletest"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/workspace"
)

// recorded is a request as an agent sends it, with what it announced before.
type recorded struct {
	Name, Agent string
	Call        json.RawMessage
	Announced   []json.RawMessage
	Want        Effect // by the rules of wide
	Rule        string // that is offered without rules, "" for none
	More        string // a further rule
}

func (r recorded) announced() (updates []string) {
	for _, update := range r.Announced {
		updates = append(updates, string(update))
	}
	return updates
}

func readRecorded(t testing.TB) (all []recorded) {
	text, err := os.ReadFile("testdata/recorded.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &all))
	return all
}

// Clause R2.
func TestRecordedRequests(t *testing.T) {
	g := newGround(t)
	for _, c := range readRecorded(t) {
		action := g.ask(t, c.Agent, string(c.Call), c.announced()...)
		rules := g.rules(t, append(wide[:len(wide):len(wide)], c.More)...)
		if c.Want == Deny {
			rules = rules.With(g.rules(t, "deny read **/.env"))
		}
		got := Decide(action, rules)
		require.Equal(t, c.Want, got.Effect, "%s: %v", c.Name, got)
		rule, ok := Offer(action, true)
		if c.Rule == "" && c.Want != Ask {
			continue
		}
		require.Equal(t, c.Rule != "", ok, "%s: %s", c.Name, rule)
		require.Equal(t, c.Rule, rule.String(), c.Name)
	}
}

// The options of a request say whether it is about one action.
//
// Clause R2.
func TestOptionsOfRequests(t *testing.T) {
	g := newGround(t)
	once, always, no := `{"optionId":"o","kind":"allow_once"}`, `{"optionId":"a","kind":"allow_always"}`, `{"optionId":"r","kind":"reject_once"}`
	for options, want := range map[string]Effect{
		once + "," + always + "," + no: Allow, always + "," + once + "," + no: Allow, once + "," + always: Allow,
		once + "," + no:                Ask, // it has a reason to ask each time
		no + "," + once + "," + always: Ask, // it suggests to refuse
		always + "," + no:              Ask,
		once + `,{"optionId":"o","kind":"allow_always"},` + no:              Ask, // an id that means both
		once + `,{"optionId":"p","kind":"allow_once"},` + always + "," + no: Ask, // such as a plan
		"": Ask,
	} {
		params := `{"toolCall":{"toolCallId":"t","kind":"execute","rawInput":{"command":"go vet ./..."}},"options":[` + options + `]}`
		require.Equal(t, want, Decide(g.request(t, "", params), g.rules(t, wide...)).Effect, options)
	}
}

// A request for more rights is asked about, and so is one that turns protection off.
//
// Clause R2.
func TestMoreRights(t *testing.T) {
	g := newGround(t)
	for member, want := range map[string]Effect{
		`"dangerouslyDisableSandbox":true`: Ask, `"dangerouslyDisableSandbox":false`: Allow,
		`"with_escalated_permissions":false`: Allow, `"with_escalated_permissions":true`: Ask, `"timeout":0`: Allow,
		`"sandbox":false`: Ask, `"sandbox":true`: Ask, `"sandbox":null`: Allow, `"use_sandbox":false`: Ask,
		`"requires_approval":false`: Ask, `"requiresApproval":true`: Ask, `"options":{"sandbox":false}`: Ask,
	} {
		for kind, input := range map[string]string{"execute": `"command":"go vet ./..."`, "edit": `"file_path":"{root}/a.txt"`,
			"read": `"file_path":"{root}/a.txt"`, "fetch": `"url":"https://docs.example.com/"`} {
			call := `{"kind":"` + kind + `","rawInput":{` + input + `,` + member + `}}`
			require.Equal(t, want, Decide(g.ask(t, "", call), g.rules(t, wide...)).Effect, call)
		}
	}
}

// Deny and ask rules see the files in the headers of a patch, whatever else the request names.
//
// Clause R2.
func TestHeadersOfPatches(t *testing.T) {
	g := newGround(t)
	for _, patch := range []string{"--- a.txt\n+++ secrets/key\n", "--- a/secrets/key\n+++ /dev/null\n", "--- x\t1\n+++ b/secrets/key\t2\n",
		"+++ {root}/secrets/key\r\n", "+++ {root}/keys/key\n", "rename from secrets/key\nrename to x\n", "+++ a.txt\n--- secrets/key\n+++ b.txt\n",
		"+++ \"secrets/key\"\n", "Index: secrets/key\n", "diff --git a/secrets/key b/x\n", "*** Update File: secrets/key\n"} {
		raw, err := json.Marshal(g.expand(patch))
		require.NoError(t, err)
		for _, member := range []string{"diff", "patch"} {
			call := `{"kind":"edit","rawInput":{"file_path":"{root}/a.txt","` + member + `":` + string(raw) + `}}`
			require.Equal(t, Deny, Decide(g.ask(t, "", call), g.rules(t, "allow edit", "deny edit secrets/**")).Effect, call)
		}
	}
}

// The answer of a client counts as the agent reads it, which takes the names as they are spelled.
//
// Clause R2.
func TestChosenOptions(t *testing.T) {
	r := Request{Options: []Option{{ID: "o", Kind: AllowOnce}, {ID: "r", Kind: RejectOnce}}}
	chosen, ok := r.Chosen([]byte(`{"outcome":{"outcome":"selected","optionId":"r","OptionId":"o"}}`))
	require.True(t, ok)
	require.Equal(t, RejectOnce, chosen.Kind)
}

// Clause R3.
func TestOffers(t *testing.T) {
	g := newGround(t)
	for want, calls := range tabletest.Read(t, "offers.txt") {
		for _, call := range calls {
			action := g.ask(t, "", g.expand(call))
			action.Session = "s"
			rule, ok := Offer(action, true)
			require.Equal(t, want != "nothing", ok, call)
			require.Equal(t, strings.HasSuffix(want, "in this session"), rule.Session != "", call)
			if !ok {
				continue
			}
			require.Equal(t, want, rule.Label(action))
			brief, _ := Offer(action, false)
			require.Equal(t, "s", brief.Session, "nothing is remembered")
			again, err := Parse(rule.String())
			require.NoError(t, err)
			require.Equal(t, rule.String(), again.String())
		}
	}
}

// A rule about a command that is not in the table holds in the folder in which it was asked about,
// and only in the session if the agent can change what it runs.
//
// Clause R3.
func TestFoldersOfCommands(t *testing.T) {
	g := newGround(t)
	for name, content := range map[string]string{"sub/x.sh": "echo 1", "sub2/x.sh": "echo 2", "x.sh": "echo 3"} {
		path := filepath.Join(g.root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+content+"\n"), 0o755))
	}
	require.NoError(t, os.Symlink("sub", filepath.Join(g.root, "same")))
	for _, c := range []struct {
		line, in string
		session  bool // whether the rule holds in the session only
		allowed  []string
	}{
		{"./x.sh", "{root}/sub", true, []string{"{root}/sub", "sub", "./sub/.", "{root}/same"}},
		{"sub/x.sh", "{root}", true, []string{"{root}", "{root}/sub/.."}},
		{"sh x.sh", "{root}/sub", true, []string{"{root}/sub"}},
		{"{root}/x.sh", "{root}", true, []string{"{root}"}},
		{"rm -rf b.txt", "{root}/sub", true, []string{"{root}/sub"}},
		{"rm -rf sub2", "{root}", false, []string{"{root}"}},
		{"npm install", "{root}/sub", false, []string{"{root}/sub", "{root}/same"}},
		{"npm install", "{other}", false, []string{"{other}"}},
		{"npm install", "", false, []string{"", "{root}", "{root}/sub", "sub2", "same", "{root}/sub/..", "./sub/.", "{root}/same"}},
	} {
		action := g.ask(t, "", commandIn(g.expand(c.line), g.expand(c.in)))
		action.Session = "s"
		rule, ok := Offer(action, true)
		require.True(t, ok, c.line)
		require.Equal(t, c.session, rule.Session != "", c.line)
		for _, dir := range []string{"", "{root}", "{root}/sub", "{root}/sub2", "{root}/same", "{other}", "sub", "sub2", "same", "./sub/.", "{root}/sub/.."} {
			later := g.ask(t, "", commandIn(g.expand(c.line), g.expand(dir)))
			later.Session = "s"
			is := later.Where.Within != "" || c.in == ""
			want := Ask
			for _, allowed := range c.allowed {
				ref, err := g.place.Workspace.Stat(commandline.Absolute(g.root, g.expand(allowed)))
				require.NoError(t, err)
				there, err := g.place.Workspace.Stat(commandline.Absolute(g.root, g.expand(dir)))
				require.NoError(t, err)
				if is && ref.Ref().Real() == there.Ref().Real() {
					want = Allow
				}
			}
			require.Equal(t, want, Decide(later, Rules{Allow: []Rule{rule}}).Effect, "%s in %q, seen in %q", c.line, dir, c.in)
		}
		other := action
		other.Session = "other"
		require.Equal(t, c.session, Decide(other, Rules{Allow: []Rule{rule}}).Effect == Ask, c.line)
		if c.session {
			continue
		}
		sources := Permits{session: NewSessionGrants(""), workspace: g.place.Workspace, Consents: consent.NewStore(t.TempDir())}
		require.NoError(t, sources.Remember(rule, consent.Consent{}))
		kept, err := sources.Rules()
		require.NoError(t, err)
		require.Len(t, kept.Allow, 1)
		require.Equal(t, rule.Within, kept.Allow[0].Within)
		require.Equal(t, Allow, Decide(action, kept).Effect)
	}
}

// A server that a file in a folder configures chooses its name.
//
// Clause R1.
func TestNamesOfServers(t *testing.T) {
	g := newGround(t)
	rules := g.rules(t, "allow tool db.*", "allow tool ro.* read-only", "deny tool db.drop", "deny tool my-server.*")
	for _, c := range []struct {
		action Action
		want   Effect
	}{
		{Action{Tool: ServerTool{Server: "db", Name: "query"}}, Allow}, {Action{Tool: ServerTool{Server: "db", Name: "query", Found: true}}, Ask},
		{Action{Tool: ServerTool{Server: "db2", Name: "query"}}, Ask}, {Action{Tool: ServerTool{Server: "DB", Name: "query"}}, Ask},
		{Action{Tool: ServerTool{Server: "db ", Name: "query"}}, Ask}, {Action{Tool: ServerTool{Server: "db.x", Name: "query"}}, Ask}, {Action{Tool: ServerTool{Server: "db", Name: ""}}, Ask},
		{Action{Tool: ServerTool{Server: "ro", Name: "x"}}, Ask}, {Action{Tool: ServerTool{Server: "ro", Name: "x", ReadOnly: true}}, Allow},
		{Action{Tool: ServerTool{Server: "db", Name: "drop"}}, Deny}, {Action{Tool: ServerTool{Server: "Db", Name: "DROP"}}, Deny}, {Action{Tool: ServerTool{Server: "d_b", Name: "drop"}}, Deny},
		{Action{Tool: ServerTool{Server: "my_server", Name: "x"}}, Deny}, {Action{Tool: ServerTool{Server: "myserver", Name: "x"}}, Deny},
		{Action{Tool: ServerTool{Server: "db", Name: "query"}, Unclear: "x"}, Ask},
	} {
		c.action.Verb = Tool
		require.Equal(t, c.want, Decide(c.action, rules).Effect, "%+v", c.action)
	}
	remembered := Rule{verb: Tool, matcher: toolRule{server: "db", tool: "query"}, Scope: Scope{Server: "1"}}
	require.Equal(t, Ask, Decide(Action{Verb: Tool, Tool: ServerTool{Server: "db", Name: "query", Config: "2"}}, Rules{Allow: []Rule{remembered}}).Effect)
	require.Equal(t, Allow, Decide(Action{Verb: Tool, Tool: ServerTool{Server: "db", Name: "query", Config: "1"}}, Rules{Allow: []Rule{remembered}}).Effect)
}

// Clause R1.
func TestRulesAreParsed(t *testing.T) {
	for _, text := range []string{"read", "read **/*.go", "edit a b.txt", "edit outside x", "read outside /etc/hosts", "edit outside /etc/hosts", "run go test ...", "run rg 'a|b'",
		"tool a.b", "tool a.* read-only", "fetch example.com", "fetch *.example.com", "run"} {
		r, err := Parse(" " + text + " ")
		require.NoError(t, err, text)
		require.Equal(t, text, r.String())
	}
	for _, text := range []string{"", "write", "read ../x", "read /etc", "edit ~/x", "read a/...", "edit [", `edit a\b`, "read outside x", "read outside /a/../b",
		"run a; b", "run $x", "run 'a", "run a*", "tool x", "tool .x", "tool a.b read-only", "fetch https://x", "fetch x:1", "fetch x/y", "fetch 1.2.3.4",
		"fetch *", "fetch", "fetch a..b", "run a\u202eb", "Read", "edit outside /a/../b"} {
		_, err := Parse(text)
		require.Error(t, err, text)
	}
	for _, text := range []string{"run", "run npx ...", "run env ...", "run sh -c ...", "run git push ...", "edit outside /etc"} {
		_, err := Permissions{Allow: []string{text}}.Rules()
		require.Error(t, err, text)
		_, err = Permissions{Deny: []string{text}, Ask: []string{text}}.Rules()
		require.NoError(t, err, text)
	}
}

// A deny or ask rule for the name of a folder is about all that is in it, an allow rule is not.
//
// Clause R1.
func TestRulesForFolders(t *testing.T) {
	g := newGround(t)
	edit := g.ask(t, "", `{"kind":"edit","rawInput":{"file_path":"{root}/sub/b.txt"}}`)
	for rule, effect := range map[string]Effect{
		"deny edit sub": Deny, "deny edit sub/": Deny, "deny edit Sub/**": Deny, "deny edit **/sub": Deny, "deny edit b.txt": Allow,
		"deny edit su*": Allow, "deny edit *": Allow, "deny edit su": Allow, "ask edit sub": Ask,
	} {
		require.Equal(t, effect, Decide(edit, g.rules(t, "allow edit", rule)).Effect, rule)
	}
	for rule, effect := range map[string]Effect{"allow edit sub": Ask, "allow edit sub/": Allow, "allow edit sub/**": Allow} {
		require.Equal(t, effect, Decide(edit, g.rules(t, rule)).Effect, rule)
	}
	require.Equal(t, Deny, Decide(g.ask(t, "", command("cat sub/b.txt")), g.rules(t, "allow run cat ...", "deny read sub")).Effect)
}

// A deny or ask rule may name a folder of the session other than the working directory, or any file
// by its absolute path.
//
// Clause R1.
func TestRulesThatNameRoots(t *testing.T) {
	g := newGround(t)
	doors := map[string]Action{
		"request":       g.ask(t, "", `{"kind":"edit","rawInput":{"file_path":"{other}/o.txt"}}`),
		"command":       g.ask(t, "", command("tee {other}/o.txt")),
		"command there": g.ask(t, "", `{"kind":"execute","rawInput":{"command":"tee o.txt","cwd":"{other}"}}`),
		"tool": g.place.ToolCall(ServerTool{Server: "fs", Name: "x"},
			json.RawMessage(`{"path":"`+g.other+`/o.txt"}`)),
		"access": g.place.Access(Edit, filepath.Join(g.other, "o.txt")),
	}
	for _, effect := range []Effect{Deny, Ask} {
		for _, rule := range []string{"edit lib", "edit lib/", "edit lib/**", "edit LIB/*.txt", "edit outside {other}", "edit outside {other}/o.txt"} {
			for door, action := range doors {
				got := Decide(action, g.rules(t, string(effect)+" "+rule))
				require.Equal(t, effect, got.Effect, "%s: %s", rule, door)
				require.NotEmpty(t, got.Rule.String(), "%s: %s", rule, door)
			}
		}
	}
	rules := g.rules(t, "deny edit lib", "deny edit outside {out}")
	require.ErrorContains(t, rules.Guard(g.place.Workspace).Remove(filepath.Join(g.other, "o.txt"), workspace.RemoveOptions{}),
		`"edit lib" denies it`)
	for _, name := range []string{"a.txt", "sub/b.txt"} {
		require.NoError(t, rules.Check(g.place.Access(Edit, filepath.Join(g.root, name))), name)
	}
	require.NoError(t, g.rules(t, "deny edit shop/**").Check(g.place.Access(Edit, filepath.Join(g.root, "a.txt"))),
		"a pattern is relative to the working directory")
	require.Error(t, rules.Check(g.place.Access(Edit, filepath.Join(g.out, "secret.txt"))))
}

// What the user has configured for sessions in another folder of the session holds too, as far as
// it denies or asks.
//
// Clause R1.
func TestRulesOfOtherFolders(t *testing.T) {
	g := newGround(t)
	rules := func(of map[string]Permissions) (Permissions, bool) {
		t.Helper()
		s := NewPermits(NewSessionGrants(""), g.place.Workspace, consent.NewStore(""), worktree.Origins{}, func(dir workspace.Dir) *Permissions {
			if p, ok := of[dir.String()]; ok {
				return &p
			}
			return nil
		})
		if s.Configured == nil {
			return Permissions{}, false
		}
		return *s.Configured, true
	}
	app := Permissions{Allow: []string{"edit"}, Deny: []string{"run x"}}
	lib := Permissions{Allow: []string{"run make"}, Ask: []string{"edit o.txt"}, Deny: []string{"read key", "run x"}}
	got, ok := rules(map[string]Permissions{g.root: app, g.other: lib})
	require.True(t, ok)
	require.Equal(t, Permissions{Allow: app.Allow, Ask: lib.Ask, Deny: []string{"run x", "read key"}}, got)
	got, ok = rules(map[string]Permissions{g.other: lib})
	require.True(t, ok)
	require.Equal(t, Permissions{Ask: lib.Ask, Deny: lib.Deny}, got)
	_, ok = rules(map[string]Permissions{g.other: {Allow: []string{"edit"}}})
	require.False(t, ok, "a folder that allows only does not turn rules on")
	only := app
	only.Only = true
	got, _ = rules(map[string]Permissions{g.root: only, g.other: only})
	require.Equal(t, only, got)
}

// Deny comes first, then ask, then allow; a mode is a set of rules.
//
// Clause R1.
func TestOrder(t *testing.T) {
	g := newGround(t)
	edit := g.ask(t, "", `{"kind":"edit","rawInput":{"file_path":"{root}/a.txt"}}`)
	require.Equal(t, Ask, Decide(edit, Rules{}).Effect)
	require.Equal(t, Allow, Decide(edit, g.rules(t, "allow edit")).Effect)
	require.Equal(t, Ask, Decide(edit, g.rules(t, "allow edit", "ask edit *.txt")).Effect)
	require.Equal(t, Deny, Decide(edit, g.rules(t, "allow edit", "ask edit *.txt", "deny edit a*")).Effect)
	edit.Mode = Rules{Allow: []Rule{AllEdits}}
	require.Equal(t, Allow, Decide(edit, Rules{}).Effect)
	require.Equal(t, Deny, Decide(edit, g.rules(t, "deny edit a*")).Effect)
	require.Equal(t, Ask, Decide(edit, g.rules(t, "ask edit a*")).Effect)
	edit.Mode = Rules{Deny: []Rule{AllEdits, AllRuns}}
	require.Equal(t, Deny, Decide(edit, g.rules(t, "allow edit")).Effect)
	run := g.ask(t, "", command("go test"))
	permits := Permits{session: NewSessionGrants(""), workspace: g.place.Workspace, Consents: consent.NewStore("")}
	permits.AllowExactly(run)
	v, err := permits.Decide(run)
	require.NoError(t, err)
	require.Equal(t, Allow, v.Effect)
	run.Mode = edit.Mode
	require.Equal(t, Deny, Decide(run, g.rules(t, "allow run go ...")).Effect)
	v, err = permits.Decide(run)
	require.NoError(t, err)
	require.Equal(t, Deny, v.Effect)
}

// FuzzAllow asks for anything: what is allowed is complete, plain and inside.
//
// Clause R2.
func FuzzAllow(f *testing.F) {
	for _, c := range readRecorded(f) {
		f.Add(string(c.Call), strings.Join(c.announced(), "\n"))
	}
	for _, lines := range tabletest.Read(f, "files.txt") {
		for _, line := range lines {
			kind, path, _ := strings.Cut(line, " ")
			f.Add(`{"kind":"`+kind+`","locations":[{"path":"`+path+`"}]}`, "")
		}
	}
	g := newGround(f)
	rules := g.rules(f, wide...)
	f.Fuzz(func(t *testing.T, call, announced string) {
		var updates []string
		for update := range strings.Lines(announced) {
			if json.Valid([]byte(update)) && json.Unmarshal([]byte(g.expand(update)), &Call{}) == nil {
				updates = append(updates, update)
			}
		}
		if !json.Valid([]byte(call)) || !strings.HasPrefix(strings.TrimSpace(call), "{") {
			return
		}
		for _, agent := range []string{"", "gemini"} {
			action := g.ask(t, agent, call, updates...)
			if Decide(action, rules).Effect != Allow {
				continue
			}
			require.Empty(t, action.Unclear)
			require.Empty(t, action.Command.Odd)
			switch action.Verb {
			case Read, Edit:
				require.NotEmpty(t, action.Files)
				for _, file := range action.Files {
					_, err := g.place.find(file.Path)
					require.NoError(t, err, file.Path)
					require.True(t, isBelow(g.root, file.Real) || isBelow(g.other, file.Real))
					require.True(t, action.Verb == Read || file.Risk == "")
				}
			case Run:
				require.NotContains(t, action.Command.Line, ";")
				require.Len(t, commandline.Read(strings.TrimSpace(action.Command.Line)).Commands, 1)
				require.NotEmpty(t, action.Command.Words)
				require.True(t, action.Command.Known != nil || slices.Contains([]string{"./run.sh", "sh run.sh", "npx x"}, strings.Join(action.Command.Words, " ")))
			case Tool:
				require.Contains(t, []string{"db", "gh"}, action.Tool.Server)
				require.False(t, action.Tool.Found)
			case Fetch:
				require.Equal(t, "docs.example.com", action.Host)
			default:
				t.Fatalf("%q was allowed", action.Verb)
			}
		}
	})
}

// FuzzDeny asks to run words for which there is a deny rule, in any line: it is never allowed.
//
// Clause R2.
func FuzzDeny(f *testing.F) {
	for _, lines := range bypasses(f) {
		for _, both := range lines {
			_, line, _ := strings.Cut(both, "|")
			f.Add("", line, " ")
			f.Add(line+" ", " ", "")
			f.Add("make check '", "' \"", "\"")
		}
	}
	f.Add(`sh -c 't""ouch x'@`, " ", "")
	f.Add(`sh -c 't""ouch "$0"' `, " ", "")
	f.Add(`sh -c "sh -c 'to''uch x'" `, "h ", "")
	g := newGround(f)
	f.Fuzz(func(t *testing.T, before, between, after string) {
		line := g.expand(before + "touch" + between + "denied" + after)
		action := g.ask(t, "", command(line))
		rules := g.rules(t, wide...)
		rules.Allow = append(rules.Allow, Rule{verb: Run, matcher: runRule{words: action.Command.Words}}) // exactly this command
		rules = rules.With(g.rules(t, "deny run touch denied"))
		if Decide(action, rules).Effect != Allow {
			return
		}
		unquoted := strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(line)
		require.NotRegexp(t, `(?s)(^|\s|/)touch\s(.*\s)?denied(\s|$)`, unquoted, "%q", action.Command.Words)
	})
}

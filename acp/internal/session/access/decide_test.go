package access

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/question"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/workspace"
)

const once = `[{"optionId":"yes","kind":"allow_once","name":"Yes"},{"optionId":"ever",` +
	`"kind":"allow_always","name":"Ever"},{"optionId":"no","kind":"reject_once","name":"No"}]`

// vet is a question of the agent whether it may run a command.
const vet = `{"toolCall":{"toolCallId":"t","kind":"execute","rawInput":{"command":"go vet"}},` +
	`"options":` + once + `}`

func rootsOf(t *testing.T, cwd string, additional ...string) workspace.Roots {
	t.Helper()
	roots, err := workspace.NewRoots(cwd, additional)
	require.NoError(t, err)
	return roots
}

// newAccess returns the access to roots with these rules, nil for none.
func newAccess(
	t *testing.T, rules *permission.Permissions, o workspace.Options, roots workspace.Roots,
) *Access {
	t.Helper()
	w, err := workspace.Open(t.Context(), roots, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	permits := permission.NewPermits(permission.NewSessionGrants("s"), w, consent.NewStore(""),
		worktree.Origins{}, func(workspace.Dir) *permission.Permissions { return rules })
	log := slog.New(slog.DiscardHandler)
	return New(Options{Session: "s", Roots: w, Guarded: permits.Guarded(), Open: o,
		Permits: permits, Catalog: func() *discovery.Catalog { return nil },
		Tasks: tasks.NewGroup(log), Log: log})
}

// asks returns a question of the agent in a turn.
func asks(params string) Question {
	q := question.New(protocol.RequestPermission, backend.Raw(params))
	return Question{Question: q, CanAsk: true, InTurn: func() bool { return true }}
}

// effect returns what rules say about a question.
func effect(t *testing.T, a *Access, q Question) permission.Effect {
	t.Helper()
	v, err := a.DecideQuestion(t.Context(), q)
	require.NoError(t, err)
	return v.Effect
}

// does returns a message of the backend with one member.
func does(method, member, value string) Message {
	return Message{Method: method, CanAsk: true,
		Params: backend.Encode(map[string]string{member: value})}
}

// Some of the rules that users may have.
var (
	none  = (*permission.Permissions)(nil)
	all   = &permission.Permissions{Deny: []string{"run"}}
	wrong = &permission.Permissions{Deny: []string{"x"}}
	some  = &permission.Permissions{Allow: []string{"read", "run go vet"},
		Ask: []string{"read asked", "edit asked"}, Deny: []string{"read denied", "run touch"}}
)

// Clauses P4, R2, R5.
func TestDecideMessage(t *testing.T) {
	root := dirtest.New(t, "file", "", "denied", "", "asked", "")
	subagent, out := dirtest.New(t), filepath.Join(dirtest.New(t, "x", ""), "x")
	file, denied, asked := root+"/file", root+"/denied", root+"/asked"
	of := func(from backend.Sender, m Message) Message {
		m.From = from
		return m
	}
	late := func(m Message) Message {
		m.CanAsk = false
		return m
	}
	decided, ofSubagent := backend.Sender{Decided: true}, backend.Sender{Subagent: "c"}
	elsewhere := backend.Sender{Subagent: "c", Roots: rootsOf(t, subagent)}
	sandboxed := backend.Sender{Made: does(protocol.ReadTextFile, "path", denied).Params}
	const read, write, run = protocol.ReadTextFile, protocol.WriteTextFile, protocol.TerminalCreate
	for name, c := range map[string]struct {
		rules   *permission.Permissions
		message Message
		want    MessageDecision // of this type
	}{
		"no rules":               {none, does(read, "path", file), Pass{}},
		"a file without rules":   {some, does(read, "path", file), Pass{}},
		"about something else":   {some, does("_x", "path", denied), Pass{}},
		"a denied file":          {some, does(read, "path", denied), Refuse{}},
		"of a subagent":          {some, of(ofSubagent, does(read, "path", denied)), Refuse{}},
		"an asked-about file":    {some, does(read, "path", asked), Confirm{}},
		"nobody can be asked":    {some, late(does(read, "path", asked)), Refuse{}},
		"the backend has asked":  {some, of(decided, does(read, "path", denied)), Pass{}},
		"as the agent made it":   {some, of(sandboxed, does(read, "path", file)), Refuse{}},
		"fs, denied to read":     {some, does("fs/x", "path", denied), Refuse{}},
		"fs, asked about":        {some, does("fs/x", "path", asked), Confirm{}},
		"fs, other file":         {some, does("fs/x", "path", file), Pass{}},
		"a denied command":       {some, does(run, "command", "touch x"), Refuse{}},
		"any command":            {all, does(run, "command", "ls"), Refuse{}},
		"no command":             {all, does(run, "command", ""), Refuse{}},
		"no file is a command":   {all, does(write, "path", file), Pass{}},
		"another spelling":       {all, does(run, "Command", "ls"), Refuse{}},
		"unreadable rules":       {wrong, does(read, "path", file), Refuse{}},
		"outside":                {none, does(read, "path", out), ReadOutside{}},
		"outside, too early":     {none, late(does(read, "path", out)), Refuse{}},
		"outside, of a subagent": {none, of(ofSubagent, does(read, "path", out)), Refuse{}},
		"outside, decided":       {none, of(decided, does(read, "path", out)), Refuse{}},
		"outside the subagent":   {none, of(elsewhere, does(read, "path", file)), Refuse{}},
		"a write outside":        {none, does(write, "path", out), Refuse{}},
	} {
		a := newAccess(t, c.rules, workspace.Options{}, rootsOf(t, root))
		got := a.DecideMessage(t.Context(), c.message)
		require.IsType(t, c.want, got, name)
		require.NotContains(t, []MessageDecision{Confirm{}, ReadOutside{}, Refuse{}}, got, name)
	}
}

// Rules are offered only where they were compared with a question: the effect is to ask.
//
// Clauses R1, R2, R5.
func TestDecideQuestion(t *testing.T) {
	at := rootsOf(t, dirtest.New(t))
	runs := asks(vet)
	own, noRule, outOfTurn, inPlan, form, late, decided := runs, runs, runs, runs, runs, runs, runs
	own.Own, noRule.Own = &permission.Action{Verb: permission.Tool}, &permission.Action{}
	outOfTurn.InTurn, inPlan.Mode = func() bool { return false }, "Plan"
	form.Question = question.New(protocol.ElicitationCreate, backend.Raw(`{}`))
	late.CanAsk, decided.From.Decided = false, true
	for name, c := range map[string]struct {
		rules    *permission.Permissions
		roots    workspace.Roots
		question Question
		want     permission.Effect
	}{
		"an allowed question": {some, at, runs, permission.Allow},
		"a denied question":   {all, at, runs, permission.Deny},
		"out of turns":        {some, at, outOfTurn, permission.Ask},
		"in a mode for plans": {some, at, inPlan, permission.Ask},
		"a form":              {some, at, form, "poll"},
		"asked while opening": {some, at, late, "poll"},
		"asked for no rule":   {some, at, decided, "poll"},
		"our own for no rule": {some, at, noRule, ""},
		"our own":             {none, at, own, permission.Ask},
		"asked without rules": {none, at, runs, ""},
		"only a grant":        {none, at.ReadOnlyAt([]string{at.Cwd().String()}), runs, ""},
		"in several ways":     {some, at, asks(`{"options":[],"options":[]}`), ""},
		"wrong rules":         {wrong, at, runs, ""},
	} {
		got := effect(t, newAccess(t, c.rules, workspace.Options{}, c.roots), c.question)
		if !c.question.IsRuled() {
			got += "poll"
		}
		require.Equal(t, c.want, got, name)
	}
	runs.From = backend.Sender{Subagent: "c", Roots: rootsOf(t, filepath.Join(t.TempDir(), "gone"))}
	_, err := newAccess(t, some, workspace.Options{}, at).DecideQuestion(t.Context(), runs)
	require.Error(t, err, "the folders of a subagent")
}

// A rule allows nothing more in a turn that ended while disks were read.
//
// Clause R2.
func TestTurnEndsMeanwhile(t *testing.T) {
	a := newAccess(t, some, workspace.Options{}, rootsOf(t, dirtest.New(t)))
	q, ended := asks(vet), false
	q.InTurn = func() bool { return !ended }
	a.Catalog = func() *discovery.Catalog {
		ended = true
		return nil
	}
	require.Equal(t, permission.Ask, effect(t, a, q))
}

// Rules that allow reads hold for questions that name nothing but files in the roots.
//
// Clause A30.
func TestAllowReads(t *testing.T) {
	a := dirtest.New(t, "a.txt", "text")
	b := dirtest.New(t, "b.txt", "text", "private/x", "text")
	out := dirtest.New(t, "secret", "text")
	for name, to := range map[string]string{"link": out + "/secret", "toB": b + "/b.txt"} {
		if err := os.Symlink(to, filepath.Join(a, name)); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	require.NoError(t, os.Link(out+"/secret", a+"/linked"))
	denied, err := workspace.ParseDir(filepath.Join(b, "private"))
	require.NoError(t, err)
	o := workspace.Options{Policy: workspace.Policy{Deny: []workspace.Dir{denied}}}
	ruled := newAccess(t, &permission.Permissions{Allow: []string{"read"}}, o, rootsOf(t, a, b))
	decide := func(kind, members string) permission.Effect {
		members = strings.NewReplacer("{a}", filepath.ToSlash(a), "{b}", filepath.ToSlash(b),
			"{out}", filepath.ToSlash(out)).Replace(members)
		return effect(t, ruled, asks(`{"toolCall":{"toolCallId":"t",`+kind+members+
			`},"options":`+once+`}`))
	}
	for name, members := range map[string]string{
		"a file in cwd":          `"locations":[{"path":"{a}/a.txt"}]`,
		"files in other roots":   `"locations":[{"path":"{a}/a.txt"},{"path":"{b}/b.txt","line":3}]`,
		"a link to another root": `"locations":[{"path":"{a}/toB"}]`,
		"a file that is missing": `"locations":[{"path":"{b}/none"}]`,
		"a path in the input":    `"locations":[{"path":"{a}"}],"rawInput":{"file_path":"{b}/b.txt"}`,
		"only the input":         `"rawInput":{"filePath":"{b}/b.txt","limit":3}`,
		"a pattern":              `"locations":[{"path":"{a}"}],"rawInput":{"pattern":"func \\.\\w+"}`,
		"a relative path":        `"locations":[{"path":"{a}"}],"rawInput":{"path":"src/x..y"}`,
		"content":                `"locations":[{"path":"{a}"}],"content":[{"type":"content"}]`,
	} {
		for _, kind := range []string{`"kind":"read",`, `"kind":"search",`} {
			require.Equal(t, permission.Allow, decide(kind, members), name)
		}
		require.NotEqual(t, permission.Allow, decide("", members), name)
		require.NotEqual(t, permission.Allow, decide(`"kind":"Read",`, members), name)
		require.NotEqual(t, permission.Allow, decide(`"title":[],"kind":"read",`, members), name)
		require.NotEqual(t, permission.Allow, decide(`"kind":"edit","kind":"read",`, members), name)
		require.NotEqual(t, permission.Allow, decide(`"kind":"edit","Kind":"read",`, members), name)
	}
	without := strings.Replace(once, `,{"optionId":"ever","kind":"allow_always","name":"Ever"}`, "", 1)
	onlyOnce := asks(`{"toolCall":{"toolCallId":"t","kind":"read","locations":[{"path":` +
		string(backend.Encode(a)) + `}]},"options":` + without + `}`)
	require.Equal(t, permission.Allow, effect(t, ruled, onlyOnce))
	many := strings.Repeat(`{"path":"{a}/a.txt"},`, 101)
	for name, members := range map[string]string{
		"no locations":              `"title":"Read"`,
		"empty locations":           `"locations":[]`,
		"no absolute path anywhere": `"rawInput":{"path":"src"}`,
		"only the input, outside":   `"rawInput":{"filePath":"{out}/secret"}`,
		"too many locations":        `"locations":[` + strings.TrimSuffix(many, ",") + `]`,
		"outside":                   `"locations":[{"path":"{out}/secret"}]`,
		"one of them outside":       `"locations":[{"path":"{a}/a.txt"},{"path":"{out}/secret"}]`,
		"a relative location":       `"locations":[{"path":"a.txt"}]`,
		"an empty location":         `"locations":[{"path":""}]`,
		"a denied directory":        `"locations":[{"path":"{b}/private"}]`,
		"in a denied directory":     `"locations":[{"path":"{b}/private/x"}]`,
		"a link to the outside":     `"locations":[{"path":"{a}/link"}]`,
		"a file with another name":  `"locations":[{"path":"{a}/linked"}]`,
		"up and out":                `"locations":[{"path":"{a}/../` + filepath.Base(out) + `/secret"}]`,
		"a command as a read":       `"locations":[{"path":"{a}"}],"rawInput":{"command":"rm -rf ."}`,
		"a nested command":          `"locations":[{"path":"{a}"}],"rawInput":{"x":{"Command-Line":["sh"]}}`,
		"input that is no object":   `"locations":[{"path":"{a}"}],"rawInput":"cat a.txt; rm -rf ."`,
		"another path in the input": `"locations":[{"path":"{a}"}],"rawInput":{"path":"{out}/secret"}`,
		"another path in a list":    `"locations":[{"path":"{a}"}],"rawInput":{"x":["{out}/secret"]}`,
		"in the home directory":     `"locations":[{"path":"{a}"}],"rawInput":{"path":"~/.ssh/id_rsa"}`,
		"a path that goes up":       `"locations":[{"path":"{a}"}],"rawInput":{"path":"..\\..\\x"}`,
		"an address":                `"locations":[{"path":"{a}"}],"rawInput":{"uri":"file://{a}/a.txt"}`,
		"a diff":                    `"locations":[{"path":"{a}"}],"content":[{"type":"diff","path":"{a}/x"}]`,
		"a terminal":                `"locations":[{"path":"{a}"}],"content":[{"type":"terminal"}]`,
	} {
		require.NotEqual(t, permission.Allow, decide(`"kind":"read",`, members), name)
	}
}

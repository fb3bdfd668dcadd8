package access

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/workspace"
)

const once = `[{"optionId":"yes","kind":"allow_once","name":"Yes"},{"optionId":"ever",` +
	`"kind":"allow_always","name":"Ever"},{"optionId":"no","kind":"reject_once","name":"No"}]`

// newAccess returns the access to roots with these rules, nil for none.
func newAccess(
	t *testing.T, rules *permission.Permissions, o workspace.Options, roots ...string,
) *Access {
	t.Helper()
	w := roottest.OpenWith(t, o, roots[0], roots[1:]...)
	permits := permission.NewPermits(permission.NewSession("s"), w, consent.NewStore(""),
		worktree.Origins{}, func(workspace.Dir) *permission.Permissions { return rules })
	log := slog.New(slog.DiscardHandler)
	return New(Options{Session: "s", Roots: w, Guarded: permits.Guard(w), Open: o,
		Permits: permits, Catalog: func() *discovery.Catalog { return nil },
		Tasks: tasks.NewGroup(log), Log: log})
}

// asks returns a question of the agent in a turn.
func asks(params string) Request {
	q := question.New(protocol.RequestPermission, backend.Raw(params))
	return Request{Question: &q, CanAsk: true, InTurn: func() bool { return true }}
}

// does returns a message of the backend with one member.
func does(method, member, value string) Request {
	return Request{Method: method, CanAsk: true,
		Params: backend.Encode(map[string]string{member: value})}
}

// Each request has one act. Rules are offered only where they were compared with a question.
//
// Clauses P4, R1, R2, R5.
func TestDecide(t *testing.T) {
	root := dirtest.New(t, "file", "", "denied", "", "asked", "")
	child, out := dirtest.New(t), filepath.Join(dirtest.New(t, "x", ""), "x")
	file, denied, asked := root+"/file", root+"/denied", root+"/asked"
	roots := func(dir string) workspace.Roots {
		roots, err := workspace.NewRoots(dir, nil)
		require.NoError(t, err)
		return roots
	}
	of := func(from backend.Sender, r Request) Request {
		r.From = from
		return r
	}
	late := func(r Request) Request {
		r.CanAsk = false
		return r
	}
	own := func(action permission.Action) Request {
		r := asks(`{"options":` + once + `}`)
		r.Question.Own = &action
		return r
	}
	runs := asks(`{"toolCall":{"toolCallId":"t","kind":"execute","rawInput":{"command":"go vet"}},` +
		`"options":` + once + `}`)
	outOfTurn, inPlan := runs, runs
	outOfTurn.InTurn, inPlan.Mode = func() bool { return false }, "Plan"
	form := question.New(protocol.ElicitationCreate, backend.Raw(`{}`))
	decided, ofChild := backend.Sender{Decided: true}, backend.Sender{Child: "c"}
	elsewhere := backend.Sender{Child: "c", Roots: roots(child)}
	orphan := backend.Sender{Child: "c", Roots: roots(filepath.Join(child, "gone"))}
	sandboxed := backend.Sender{Made: does(protocol.ReadTextFile, "path", denied).Params}

	none, all := (*permission.Permissions)(nil), &permission.Permissions{Deny: []string{"run"}}
	wrong := &permission.Permissions{Deny: []string{"x"}}
	some := &permission.Permissions{Allow: []string{"read", "run go vet"},
		Ask: []string{"read asked", "edit asked"}, Deny: []string{"read denied", "run touch"}}
	const read, write, run = protocol.ReadTextFile, protocol.WriteTextFile, protocol.TerminalCreate
	for name, c := range map[string]struct {
		rules   *permission.Permissions
		request Request
		act     Act
	}{
		"no rules":              {none, does(read, "path", file), Pass},
		"a file without rules":  {some, does(read, "path", file), Pass},
		"about something else":  {some, does("_x", "path", denied), Pass},
		"a denied file":         {some, does(read, "path", denied), Refuse},
		"of a child":            {some, of(ofChild, does(read, "path", denied)), Refuse},
		"an asked-about file":   {some, does(read, "path", asked), Confirm},
		"nobody can be asked":   {some, late(does(read, "path", asked)), Refuse},
		"the backend has asked": {some, of(decided, does(read, "path", denied)), Pass},
		"as the agent made it":  {some, of(sandboxed, does(read, "path", file)), Refuse},
		"fs, denied to read":    {some, does("fs/x", "path", denied), Refuse},
		"fs, asked about":       {some, does("fs/x", "path", asked), Confirm},
		"fs, other file":        {some, does("fs/x", "path", file), Pass},
		"a denied command":      {some, does(run, "command", "touch x"), Refuse},
		"any command":           {all, does(run, "command", "ls"), Refuse},
		"no command":            {all, does(run, "command", ""), Refuse},
		"no file is a command":  {all, does(write, "path", file), Pass},
		"another spelling":      {all, does(run, "Command", "ls"), Refuse},
		"unreadable rules":      {wrong, does(read, "path", file), Refuse},
		"outside":               {none, does(read, "path", out), ReadOutside},
		"outside, too early":    {none, late(does(read, "path", out)), Refuse},
		"outside, of a child":   {none, of(ofChild, does(read, "path", out)), Refuse},
		"outside, decided":      {none, of(decided, does(read, "path", out)), Refuse},
		"outside the child":     {none, of(elsewhere, does(read, "path", file)), Refuse},
		"a write outside":       {none, does(write, "path", out), Refuse},

		"an allowed question":   {some, runs, Allow},
		"a denied question":     {all, runs, Reject},
		"out of turns":          {some, outOfTurn, Ask},
		"in a mode for plans":   {some, inPlan, Ask},
		"a form":                {some, Request{Question: &form, CanAsk: true}, Poll},
		"asked while opening":   {some, late(runs), Poll},
		"asked for no rule":     {some, of(decided, runs), Poll},
		"our own for no rule":   {some, own(permission.Action{}), Ask},
		"our own":               {none, own(permission.Action{Verb: permission.Tool}), Ask},
		"asked without rules":   {none, runs, Ask},
		"in several ways":       {some, asks(`{"options":[],"options":[]}`), Ask},
		"wrong rules":           {wrong, runs, Ask},
		"asked without folders": {some, of(orphan, runs), Refuse},
	} {
		d := newAccess(t, c.rules, workspace.Options{}, root).Decide(t.Context(), c.request)
		require.Equal(t, c.act, d.Act, name)
		isError := slices.Contains([]Act{Refuse, Reject, ReadOutside}, c.act)
		require.Equal(t, isError, d.Err != nil, name)
		isRuled := slices.Contains([]string{"out of turns", "in a mode for plans", "our own"}, name)
		require.Equal(t, isRuled, d.Act == Ask && d.Verdict.Action.Verb != "", name)
	}
}

// A rule allows nothing more in a turn that ended while disks were read.
//
// Clause R2.
func TestTurnEndsMeanwhile(t *testing.T) {
	a := newAccess(t, &permission.Permissions{Allow: []string{"run go vet"}}, workspace.Options{},
		dirtest.New(t))
	r := asks(`{"toolCall":{"toolCallId":"t","kind":"execute","rawInput":{"command":"go vet"}},` +
		`"options":` + once + `}`)
	require.Equal(t, Allow, a.Decide(t.Context(), r).Act)
	ended := false
	r.InTurn = func() bool { return !ended }
	a.Catalog = func() *discovery.Catalog {
		ended = true
		return nil
	}
	require.Equal(t, Ask, a.Decide(t.Context(), r).Act)
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
	ruled := newAccess(t, &permission.Permissions{Allow: []string{"read"}}, o, a, b)
	decide := func(kind, members string) Decision {
		members = strings.NewReplacer("{a}", filepath.ToSlash(a), "{b}", filepath.ToSlash(b),
			"{out}", filepath.ToSlash(out)).Replace(members)
		return ruled.Decide(t.Context(), asks(`{"toolCall":{"toolCallId":"t",`+kind+members+
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
			require.Equal(t, Allow, decide(kind, members).Act, name)
		}
		require.Equal(t, Ask, decide("", members).Act, name)
		require.Equal(t, Ask, decide(`"kind":"Read",`, members).Act, name)
		require.Equal(t, Ask, decide(`"title":[],"kind":"read",`, members).Act, name)
		require.Equal(t, Ask, decide(`"kind":"edit","kind":"read",`, members).Act, name)
		require.Equal(t, Ask, decide(`"kind":"edit","Kind":"read",`, members).Act, name)
	}
	without := strings.Replace(once, `,{"optionId":"ever","kind":"allow_always","name":"Ever"}`, "", 1)
	onlyOnce := asks(`{"toolCall":{"toolCallId":"t","kind":"read","locations":[{"path":` +
		string(backend.Encode(a)) + `}]},"options":` + without + `}`)
	require.Equal(t, Allow, ruled.Decide(t.Context(), onlyOnce).Act)
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
		require.Equal(t, Ask, decide(`"kind":"read",`, members).Act, name)
	}
}

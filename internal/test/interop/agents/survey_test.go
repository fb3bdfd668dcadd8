package agents

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

var survey = flag.Bool("survey", false, "run every agent and write the tables of docs/agents-compared.md")

// onlyInSurvey skips a test that runs agents for minutes.
func onlyInSurvey(t *testing.T) {
	t.Helper()
	if !*survey {
		t.Skip("make interop-agents runs this")
	}
}

// The page with the tables, and the marks around the first of them.
const (
	page  = "../../../../docs/agents-compared.md"
	begin = "<!-- make interop-agents writes what follows -->\n"
	end   = "<!-- up to here -->\n"
)

// surveyed are the agents of the tables.
var surveyed = []subject{claude, oldClaude, cline, codex, zedCodex, gemini, copilot, goose, kilo, opencode, pi,
	qwen}

// abilities are the columns of the table: what can be done with a session, and the cell of an agent
// alone, which is empty without says.
var abilities = []struct {
	title string
	says  func(s *stage, alone *editor, known *session) string
	try   func(t *testing.T, s *stage, known *session) error
}{
	{"several folders", advertises(func(a client.Agent) bool { return a.AdditionalDirectories }), workInRoots},
	{"list", advertises(func(a client.Agent) bool { return a.List }), listAnew},
	{"load", advertises(func(a client.Agent) bool { return a.Load }), loadAnew},
	{"resume", advertises(func(a client.Agent) bool { return a.Resume }), resumeAnew},
	{"fork", advertises(func(a client.Agent) bool { return a.Fork }), forkAnew},
	{"close", advertises(func(a client.Agent) bool { return a.Close }), closeSession},
	{"delete", advertises(func(a client.Agent) bool { return a.Delete }), deleteSession},
	{"folder removed", nil, removeFolders},
	{"edits after load", nil, loadEdits},
	{"own files", nil, readOwnFile},
	{"title", nil, keepTitle},
	{"second prompt", saysSecondPrompt, promptTwice},
}

// advertises returns the cell of an agent that advertises the ability if has returns true.
func advertises(has func(client.Agent) bool) func(*stage, *editor, *session) string {
	return func(_ *stage, alone *editor, _ *session) string {
		return map[bool]string{true: "yes", false: "–"}[has(alone.agent)]
	}
}

// TestAgentsTable fills the first table, which takes minutes.
func TestAgentsTable(t *testing.T) {
	surveyAll(t, begin, heading(), func(t *testing.T, s *stage) string { return strings.Join(rows(t, s), "") })
}

// surveyAll fills a table of the page with the rows of all agents. The rows of agents that -run
// leaves out stay.
func surveyAll(t *testing.T, begin, heading string, rows func(*testing.T, *stage) string) {
	onlyInSurvey(t)
	table := make([]string, len(surveyed))
	ran := t.Run("agents", func(t *testing.T) {
		for i, s := range surveyed {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				table[i] = rows(t, onStage(t, s))
			})
		}
	})
	require.True(t, ran, "the table was not written: an agent could not be tried")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, opened := strings.Cut(string(text), begin)
	earlier, after, closed := strings.Cut(rest, end)
	require.True(t, opened && closed, "%s has no place for the table", page)
	for i, s := range surveyed {
		if table[i] == "" {
			table[i] = rowsOf(earlier, s.name)
		}
	}
	text = []byte(before + begin + heading + strings.Join(table, "") + end + after)
	require.NoError(t, os.WriteFile(page, text, 0o644))
}

// rowsOf returns the rows of an agent in a table: that with its name, and those below without a
// name.
func rowsOf(table, agent string) string {
	_, rest, _ := strings.Cut(table, "\n| "+agent+" |")
	if rest == "" {
		return ""
	}
	of := "| " + agent + " |"
	for line := range strings.Lines(rest) {
		if of != "| "+agent+" |" && !strings.HasPrefix(line, "|  |") {
			break
		}
		of += line
	}
	return of
}

func heading() string {
	titles := []string{"agent", "version", ""}
	for _, a := range abilities {
		titles = append(titles, a.title)
	}
	return headingOf(append(titles, "learns about the folders"))
}

// headingOf returns the heading of a table.
func headingOf(titles []string) string {
	return row(titles) + row(slices.Repeat([]string{"---"}, len(titles)))
}

func row(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

// rows returns an agent's two rows: what it advertises, and what works behind the program.
func rows(t *testing.T, s *stage) []string {
	alone := s.alone(t, noFiles)
	known := &session{}
	had := []string{s.subject.name, s.subject.version(t), "alone"}
	for _, a := range abilities {
		cell := ""
		if a.says != nil {
			cell = a.says(s, alone, known)
		}
		had = append(had, cell)
	}
	alone.leave()

	has := []string{"", "", "behind acp-agent"}
	for _, a := range abilities {
		err := a.try(t, s, known)
		if err != nil {
			t.Logf("%s, %s: %v", s.subject.name, a.title, err)
		}
		has = append(has, map[bool]string{true: "yes", false: "**no**"}[err == nil])
	}
	t.Logf("\n%s%s", row(append(had, "")), row(append(has, known.way)))
	return []string{row(append(had, "")), row(append(has, known.way))}
}

// readOwnFile reads back the long output of a command, which most agents write to a file of their
// own, in front of an editor that offers to read files.
func readOwnFile(t *testing.T, s *stage, _ *session) error {
	e := s.behind(t, withFiles)
	defer e.leave()
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, s.first)})
	if err != nil {
		return err
	}
	result := func(words string, order modelserver.Order) string {
		turn := s.prompt(e, made.ID, words, order)
		results := turn[len(turn)-1].Of(modelserver.Result)
		return strings.Join(results[max(0, len(results)-1):], "")
	}
	const part = "\n5000\n" // some keep neither the beginning nor the end
	output := result("Please run it.", modelserver.Run("seq 1 12000"))
	if output == "" {
		return errors.New("it ran no command")
	}
	for _, path := range regexp.MustCompile(`/[\w./-]*\w`).FindAllString(output, -1) {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), part) {
			continue
		}
		t.Logf("%s keeps long output in %s", s.subject.name, path)
		if answer := result("Please look.", modelserver.Read(path)); strings.Contains(answer, "acp-agent refused") {
			return errors.New(answer)
		}
		if slices.Contains(e.read, path) {
			return fmt.Errorf("the editor was asked for %s", path)
		}
		return nil
	}
	t.Logf("%s keeps no long output in a file: %d bytes", s.subject.name, len(output))
	return nil
}

// session is the session that a survey works with.
type session struct {
	id     string
	way    string // how the agent was told of the folders
	second string // what the agent alone does with a prompt during a turn
}

const (
	asked    = "Please mend the fruit."
	answered = "The fruit is mended."
)

// expect returns an error unless text contains all parts.
func expect(what, text string, parts ...string) error {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return fmt.Errorf("%s lacks %q", what, part)
		}
	}
	return nil
}

// turn runs a turn and returns the text of the first request to the model, or an error if the turn
// does not end.
func (s *stage) turn(t *testing.T, e *editor, session string, orders ...modelserver.Order) (string, error) {
	asks, err := s.ask(t, e, session, orders...)
	return asks.Text(), err
}

// ask is turn, but returns the request.
func (s *stage) ask(t *testing.T, e *editor, session string, orders ...modelserver.Order) (modelserver.Request, error) {
	before := len(s.model.Requests())
	end, err := e.Prompt(within(t), session, sdk.TextBlock(modelserver.Prompt(asked, orders...)))
	if err != nil || end.StopReason != sdk.StopReasonEndTurn {
		return modelserver.Request{}, fmt.Errorf("the turn ended with %q, %w", end.StopReason, err)
	}
	for _, r := range s.model.Requests()[before:] {
		if r.Asks() {
			return r, nil
		}
	}
	return modelserver.Request{}, errors.New("the model was not asked")
}

func workInRoots(t *testing.T, s *stage, known *session) error {
	e := s.behind(t, noFiles)
	defer e.leave()
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, s.first, s.second)})
	if err != nil {
		return err
	}
	known.id = made.ID
	asks, err := s.ask(t, e, made.ID, modelserver.Read(fruit(s.first)), modelserver.Edit(fruit(s.first), "banana", "cherry"),
		modelserver.Say(answered))
	if err != nil {
		return err
	}
	known.way = s.way(t, asks)
	told := asks.Text()
	if content(t, s.first) != "cherry\n" {
		return fmt.Errorf("a file in an additional folder was not edited: %s", e.heard(made.ID))
	}
	return expect("what the model was told", told, s.first, s.second)
}

// way returns how the agent learned about the folders.
func (s *stage) way(t *testing.T, asks modelserver.Request) string {
	const listed = "This session has several folders:"
	switch processes := fmt.Sprint(s.processes(t)); {
	case strings.Contains(asks.Instructions, listed):
		return "in the system prompt"
	case strings.Contains(strings.Join(asks.Of(modelserver.User), "\n"), "<"+onlyForTheAgent+">\n"+listed):
		return "in the prompt"
	case strings.Contains(asks.Text(), listed):
		return "before the first prompt"
	case strings.Contains(processes, "--include-directories"):
		return "by its flag"
	}
	return "by the protocol"
}

func listAnew(t *testing.T, s *stage, known *session) error {
	e := s.behind(t, noFiles)
	defer e.leave()
	if ids := e.listed(s.query(t, s.first, s.second)); !slices.Equal(ids, []string{known.id}) {
		return fmt.Errorf("listed by its folders: %q", ids)
	}
	return nil
}

// goesOn returns an error unless the model receives the conversation in the next turn.
func (s *stage) goesOn(t *testing.T, e *editor, id string) error {
	told, err := s.turn(t, e, id, modelserver.Say("Gone on."))
	if err != nil {
		return err
	}
	return expect("what the model was told", told, answered)
}

func loadAnew(t *testing.T, s *stage, known *session) error {
	e := s.behind(t, noFiles)
	defer e.leave()
	if _, err := e.LoadSession(within(t), known.id, client.Setup{Roots: s.roots(t, s.second)}); err != nil {
		return err
	}
	replayed := e.heard(known.id)
	if strings.Contains(replayed, onlyForTheAgent) {
		return errors.New("the replay shows what the agent alone was told")
	}
	if ids := e.listed(s.query(t, s.second)); !slices.Equal(ids, []string{known.id}) {
		return fmt.Errorf("listed by its new folders: %q", ids)
	}
	return errors.Join(expect("the replay", replayed, asked, answered), s.goesOn(t, e, known.id))
}

func resumeAnew(t *testing.T, s *stage, known *session) error {
	e := s.behind(t, noFiles)
	defer e.leave()
	if _, err := e.ResumeSession(within(t), known.id, client.Setup{Roots: s.roots(t, s.first)}); err != nil {
		return err
	}
	if strings.Contains(e.heard(known.id), answered) {
		return errors.New("the conversation was replayed")
	}
	return s.goesOn(t, e, known.id)
}

func forkAnew(t *testing.T, s *stage, known *session) error {
	e := s.behind(t, noFiles)
	defer e.leave()
	made, err := e.ForkSession(within(t), known.id, client.Setup{Roots: s.roots(t, s.first)})
	if err != nil {
		return err
	}
	if strings.Contains(e.heard(made.ID), answered) {
		return errors.New("the conversation was replayed")
	}
	return s.goesOn(t, e, made.ID)
}

func closeSession(t *testing.T, s *stage, known *session) error {
	e := s.behind(t, noFiles)
	defer e.leave()
	if _, err := e.ResumeSession(within(t), known.id, client.Setup{Roots: s.roots(t)}); err != nil {
		return err
	}
	if err := e.CloseSession(within(t), known.id); err != nil {
		return err
	}
	if !slices.Contains(e.listed(client.Query{}), known.id) {
		return errors.New("it is listed no more")
	}
	return nil
}

func deleteSession(t *testing.T, s *stage, known *session) error {
	e := s.behind(t, noFiles)
	defer e.leave()
	if err := e.DeleteSession(within(t), known.id); err != nil {
		return err
	}
	if slices.Contains(e.listed(client.Query{}), known.id) {
		return errors.New("it is still listed")
	}
	return nil
}

// removeFolders fails unless the agent treats folders that a load has removed like any other. It
// removes one where the session is active, and the last one in another process.
func removeFolders(t *testing.T, s *stage, _ *session) error {
	first, second, other := folderOutsideTemp(t), folderOutsideTemp(t), folderOutsideTemp(t)
	e := s.behind(t, noFiles)
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, first, second)})
	if err != nil {
		return err
	}
	for _, folder := range []string{first, second} {
		if a := s.access(e, made.ID, folder); !a.reads && !a.readsByServer {
			return fmt.Errorf("a folder of the session cannot be read: %+v", a)
		}
	}
	var wrong []error
	compare := func(when, removed string) {
		got, want := s.access(e, made.ID, removed), s.access(e, made.ID, other)
		t.Logf("%s, %s, the removed folder: %+v", s.subject.name, when, got)
		if got != want {
			wrong = append(wrong, fmt.Errorf("%s, the removed folder: %+v, any other folder: %+v", when, got, want))
		}
	}
	if _, err := e.LoadSession(within(t), made.ID, client.Setup{Roots: s.roots(t, second)}); err != nil {
		return err
	}
	compare("in the same process", first)
	e.leave()
	e = s.behind(t, noFiles)
	defer e.leave()
	if _, err := e.LoadSession(within(t), made.ID, client.Setup{Roots: s.roots(t)}); err != nil {
		return err
	}
	compare("in another process", second)
	return errors.Join(wrong...)
}

// loadEdits fails unless a load in another process shows an edit that the user allowed and one that
// the user rejected as tool calls, if the agent showed them at first.
func loadEdits(t *testing.T, s *stage, _ *session) error {
	setup := client.Setup{Roots: s.roots(t)}
	e := s.behind(t, noFiles)
	made, err := e.NewSession(within(t), setup)
	if err != nil {
		return err
	}
	words := []string{"apple", "quince", "medlar"}
	for i := range 2 {
		prompt := modelserver.Prompt(asked, modelserver.Read(fruit(s.cwd)),
			modelserver.Edit(fruit(s.cwd), words[i], words[i+1]), modelserver.Say(answered))
		end, err := e.Prompt(within(t), made.ID, sdk.TextBlock(prompt))
		rejected := i > 0 && end.StopReason == sdk.StopReasonCancelled // some agents end the turn then
		if err != nil || end.StopReason != sdk.StopReasonEndTurn && !rejected {
			return fmt.Errorf("the turn ended with %q, %w", end.StopReason, err)
		}
		e.reject()
	}
	live := toolCalls(e.heard(made.ID)) + e.permissions()
	e.leave()
	e = s.behind(t, noFiles)
	defer e.leave()
	if _, err := e.LoadSession(within(t), made.ID, setup); err != nil {
		return err
	}
	replayed := toolCalls(e.heard(made.ID))
	for _, word := range words[1:] {
		if strings.Contains(live, word) && !strings.Contains(replayed, word) {
			return fmt.Errorf("a load does not show the edit to %q: %s", word, replayed)
		}
	}
	known := make(map[string]bool)
	for line := range strings.Lines(replayed) {
		var u struct{ SessionUpdate, ToolCallID string }
		if err := json.Unmarshal([]byte(line), &u); err != nil {
			return err
		}
		known[u.ToolCallID] = known[u.ToolCallID] || u.SessionUpdate == "tool_call"
		if !known[u.ToolCallID] {
			return fmt.Errorf("a load updates a tool call that it has not shown: %s", line)
		}
	}
	return nil
}

// toolCalls returns those of the updates that are about tool calls.
func toolCalls(updates string) string {
	var about strings.Builder
	for line := range strings.Lines(updates) {
		if strings.Contains(line, `"sessionUpdate":"tool_call`) {
			about.WriteString(line)
		}
	}
	return about.String()
}

// keepTitle fails unless a session is titled with what the user typed, or by the model, also once
// another process has asked the agent for its titles.
func keepTitle(t *testing.T, s *stage, _ *session) error {
	e := s.behind(t, noFiles)
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, s.first)})
	if err != nil {
		return err
	}
	if _, err := s.turn(t, e, made.ID, modelserver.Say(answered)); err != nil {
		return err
	}
	const mark = "<acp-agent" // agents truncate titles
	wrong := func(e *editor) error {
		for listed, err := range e.Sessions(within(t), client.Query{Cwd: s.roots(t).Cwd()}) {
			if err != nil {
				return err
			}
			title := ""
			if listed.Title != nil {
				title = *listed.Title
			}
			right := strings.HasPrefix(title, asked) || title == modelserver.Title
			if listed.ID == made.ID && !right || strings.Contains(title, mark) {
				return fmt.Errorf("a session is titled %q", title)
			}
		}
		if strings.Contains(e.heard(made.ID), onlyForTheAgent) {
			return fmt.Errorf("an update shows what the agent alone was told: %s", e.heard(made.ID))
		}
		return nil
	}
	if err := wrong(e); err != nil {
		return err
	}
	e.leave()
	e = s.behind(t, noFiles)
	defer e.leave()
	return wrong(e)
}

// What agents do with a prompt during a turn.
const (
	queues   = "queues"
	ends     = "queues, answers at once" // before it begins
	joins    = "adds to the turn"
	replaces = "ends the first turn"
	refuses  = "refuses"
	loses    = "never answers it"
)

// secondPrompt sends a prompt while the command of another one runs, and returns what the agent
// does.
func (s *stage) secondPrompt(e *editor, session string) (does string, err error) {
	before := len(s.model.Requests())
	first, release, err := s.startCommand(e, session, firstWords, modelserver.Say(firstAnswer))
	if err != nil {
		return "", err
	}
	second := e.startPrompt(session, secondWords, modelserver.Say(secondAnswer))
	e.awaitSent(session)
	release()
	firstEnd, firstErr := first()
	secondEnd, secondErr := second()
	shown := e.heard(session)
	switch {
	case errors.Is(secondErr, context.DeadlineExceeded):
		return loses, nil
	case secondErr != nil && firstEnd == sdk.StopReasonEndTurn:
		e.t.Logf("%s refuses a prompt during a turn: %v", s.subject.name, secondErr)
		return refuses, expect("the turn", shown, firstAnswer)
	case secondEnd != sdk.StopReasonEndTurn:
		return "", fmt.Errorf("the turns end with %q and %q: %w", firstEnd, secondEnd, errors.Join(firstErr, secondErr))
	case firstEnd != sdk.StopReasonEndTurn:
		return replaces, expect("the second turn", shown, secondAnswer)
	case !strings.Contains(shown, secondAnswer):
		return ends, e.await(session, secondAnswer)
	}
	for _, r := range s.model.Requests()[before:] {
		if r.Asks() && len(r.Of(modelserver.Result)) > 0 && !strings.Contains(r.Text(), secondWords) {
			return queues, expect("the turns", shown, firstAnswer)
		}
	}
	return joins, nil
}

// await waits until the session's updates contain text.
func (e *editor) await(session, text string) error {
	for ctx := within(e.t); !strings.Contains(e.heard(session), text); time.Sleep(10 * time.Millisecond) {
		if ctx.Err() != nil {
			return expect("what was shown", e.heard(session), text)
		}
	}
	return nil
}

const (
	firstWords, firstAnswer   = "Please wait.", "I have waited."
	secondWords, secondAnswer = "Please hurry.", "I have hurried."
)

// saysSecondPrompt returns what an agent alone does with a prompt during a turn.
func saysSecondPrompt(s *stage, alone *editor, known *session) string {
	made, err := alone.NewSession(within(alone.t), client.Setup{Roots: s.roots(alone.t)})
	require.NoError(alone.t, err)
	known.second, err = s.secondPrompt(alone, made.ID)
	require.NoError(alone.t, err)
	return known.second
}

// promptTwice fails unless a prompt during a turn gets the answer that the agent alone gives it, a
// cancel ends both turns, and a load in another process shows both.
func promptTwice(t *testing.T, s *stage, known *session) error {
	setup := client.Setup{Roots: s.roots(t)}
	e := s.behind(t, noFiles)
	made, err := e.NewSession(within(t), setup)
	if err != nil {
		return err
	}
	does, err := s.secondPrompt(e, made.ID)
	if err != nil {
		return err
	}
	if does != known.second {
		return fmt.Errorf("it %s, but alone it %s", does, known.second)
	}
	if does == loses {
		return nil
	}
	if err := s.cancelBoth(t, e, made.ID, does); err != nil {
		return err
	}
	if _, err := e.startPrompt(made.ID, asked, modelserver.Say(answered))(); err != nil {
		return err
	}
	if err := e.await(made.ID, answered); err != nil {
		return err
	}
	e.leave()
	e = s.behind(t, noFiles)
	defer e.leave()
	if _, err := e.LoadSession(within(t), made.ID, setup); err != nil {
		return err
	}
	shown := map[string][]string{
		queues:   {firstWords, firstAnswer, secondWords, secondAnswer, answered},
		ends:     {firstWords, firstAnswer, secondWords, secondAnswer, answered},
		joins:    {firstWords, secondWords, secondAnswer, answered},
		replaces: {firstWords, secondWords, secondAnswer, answered},
		refuses:  {firstWords, firstAnswer, answered},
	}
	return expect("the replay", e.heard(made.ID), shown[does]...)
}

// startCommand sends a prompt whose first order is a command that runs until release is called. It
// returns once the command runs.
func (s *stage) startCommand(e *editor, session, words string, then ...modelserver.Order) (end func() (sdk.StopReason, error), release func(), err error) {
	e.t.Helper()
	dir, err := os.MkdirTemp(s.cwd, "wait")
	require.NoError(e.t, err)
	runs, stop := filepath.Join(dir, "runs"), filepath.Join(dir, "stop")
	release = func() { require.NoError(e.t, os.WriteFile(stop, nil, 0o644)) }
	command := modelserver.Run("touch " + runs + "; until test -e " + stop + "; do sleep 0.1; done")
	end = e.startPrompt(session, words, append([]modelserver.Order{command}, then...)...)
	for ctx := within(e.t); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(runs); err == nil {
			return end, release, nil
		}
		if ctx.Err() != nil {
			return nil, nil, errors.New("it ran no command")
		}
	}
}

// cancelBoth cancels two prompts of an agent that does as secondPrompt returns.
func (s *stage) cancelBoth(t *testing.T, e *editor, session, does string) error {
	first, release, err := s.startCommand(e, session, "Take your time.")
	if err != nil {
		return err
	}
	defer release()
	var second func() (sdk.StopReason, error)
	if does == replaces {
		var release func()
		if second, release, err = s.startCommand(e, session, "And this."); err != nil {
			return err
		}
		defer release()
	} else {
		second = e.startPrompt(session, "And this.", modelserver.Say("Done."))
		e.awaitSent(session)
	}
	if err := e.Cancel(within(t), session); err != nil {
		return err
	}
	firstEnd, firstErr := first()
	secondEnd, secondErr := second()
	if firstEnd != sdk.StopReasonCancelled && does != replaces {
		return fmt.Errorf("the first prompt was cancelled and ends with %q: %w", firstEnd, firstErr)
	}
	if secondEnd != sdk.StopReasonCancelled && does != refuses && does != ends {
		return fmt.Errorf("the second prompt was cancelled and ends with %q: %w", secondEnd, secondErr)
	}
	return nil
}

// folderOutsideTemp creates a folder that is not in a temporary directory where sandboxes let
// agents write.
func folderOutsideTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "acp-agent-survey-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// access is how an agent accesses a folder.
type access struct {
	reads, writes, asks           bool // its own tools
	readsByServer, writesByServer bool // the tools of our MCP server
}

// access has the model read and write in a folder, each time another file.
func (s *stage) access(e *editor, session, folder string) (a access) {
	e.t.Helper()
	const edited = "banana"
	try := func(server string) (reads, writes bool) {
		number := len(s.model.Requests())
		file, secret := filepath.Join(folder, fmt.Sprintf("file%d", number)), fmt.Sprintf("secret%d", number)
		require.NoError(e.t, os.WriteFile(file, []byte(secret+"\n"), 0o644))
		for _, order := range []modelserver.Order{modelserver.Read(file), modelserver.Edit(file, secret, edited)} {
			turn := s.prompt(e, session, "Please look.", order.By(server), modelserver.Say("I looked."))
			for _, r := range turn {
				reads = reads || order.Do == "read" && strings.Contains(strings.Join(r.Of(modelserver.Result), "\n"), secret)
			}
		}
		text, err := os.ReadFile(file)
		require.NoError(e.t, err)
		return reads, string(text) == edited+"\n"
	}
	asked := e.permissions()
	a.reads, a.writes = try("")
	a.asks = e.permissions() != asked
	a.readsByServer, a.writesByServer = try(rootsTools)
	return a
}

const beginServers = "<!-- make interop-agents writes what follows of MCP servers -->\n"

// serversHeading is the heading of the second table.
var serversHeading = []string{"agent", "starts a session's MCP servers", "asks before it writes by their tools", "tells them", "with `rootsRelay`",
	"announces its commands at a load"}

// TestServersTable fills the second table, which takes minutes.
func TestServersTable(t *testing.T) {
	surveyAll(t, beginServers, headingOf(serversHeading), func(t *testing.T, s *stage) string {
		cells := row(s.serverCells(t))
		t.Logf("\n%s", cells)
		return cells
	})
}

// serverCells returns an agent's row.
func (s *stage) serverCells(t *testing.T) []string {
	announces := s.announcesAnew(t)
	without, asks := s.rootsOf(t, s.relaying(t, "off"), 5)
	if without == "" {
		return []string{s.subject.name, "–", "", "", "", announces}
	}
	with, _ := s.rootsOf(t, s.relaying(t, "on"), 10)
	return []string{s.subject.name, "yes", map[bool]string{true: "yes", false: "–"}[asks], without, with, announces}
}

// rootsOf returns which roots a session's server received, and whether the agent asked before
// writing through it. It tries several times, because an agent may start the server late; "" means
// that it was not started.
func (s *stage) rootsOf(t *testing.T, e *editor, looks int) (says string, asks bool) {
	defer e.leave()
	made, err := e.NewSession(within(t), s.withServer(t, s.first, s.second))
	require.NoError(t, err)
	for range looks {
		if roots, ok := s.serverRoots(e, made.ID); ok {
			says = s.inWords(roots)
		}
		if says == allFolders {
			break
		}
	}
	_, used := s.use(e, made.ID, modelserver.Use("create_directory", filepath.Join(s.cwd, "basket")))
	require.Equal(t, says != "", used)
	return says, strings.Contains(e.permissions(), "create_directory")
}

const allFolders = "all folders"

// inWords describes which of the session's folders a server's roots are.
func (s *stage) inWords(roots []string) string {
	switch all := []string{s.cwd, s.first, s.second}; {
	case len(roots) == 0:
		return "none"
	case slices.Equal(roots, all[:1]):
		return "the working directory"
	case slices.Equal(roots, all):
		return allFolders
	}
	return strings.Join(roots, " ")
}

// announcesAnew reports whether another process of the agent announces its slash commands when it
// loads a session.
func (s *stage) announcesAnew(t *testing.T) string {
	e := s.behind(t, noFiles)
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t)})
	require.NoError(t, err)
	s.prompt(e, made.ID, asked, modelserver.Say(answered))
	announced := s.announced(e, made.ID)
	e.leave()
	if !announced {
		return "has none"
	}
	e = s.behind(t, noFiles)
	defer e.leave()
	_, err = e.LoadSession(within(t), made.ID, client.Setup{Roots: s.roots(t)})
	require.NoError(t, err)
	return map[bool]string{true: "yes", false: "–"}[s.announced(e, made.ID)]
}

// announced reports whether the client receives slash commands of the agent within some seconds.
func (s *stage) announced(e *editor, session string) bool {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for line := range strings.Lines(e.heard(session)) {
			var u struct{ AvailableCommands []struct{ Name string } }
			if json.Unmarshal([]byte(line), &u) != nil {
				continue
			}
			for _, c := range u.AvailableCommands {
				if c.Name != "roots" && c.Name != "mcp" && c.Name != "agent-mcp" { // the program's own
					return true
				}
			}
		}
	}
	return false
}

const beginKinds = "<!-- make interop-agents writes what follows of instructions and skills -->\n"

// kindsHeading is the heading of the third table.
var kindsHeading = []string{"agent", "folder", "`AGENTS.md`", "of a directory below", "skills in `.agents/skills`", "commands in `.claude/commands`"}

// TestKindsTable fills the third table, which takes minutes.
func TestKindsTable(t *testing.T) {
	surveyAll(t, beginKinds, headingOf(kindsHeading), func(t *testing.T, s *stage) (cells string) {
		for _, c := range s.kinds(t) {
			cells += row(c)
		}
		t.Logf("\n%s", cells)
		return cells
	})
}

// kinds returns an agent's rows: how its model learned what is in the working directory, and in
// another folder.
func (s *stage) kinds(t *testing.T) [][]string {
	folders := []string{s.cwd, s.first}
	words := []string{"apple", "banana"}
	var orders []modelserver.Order
	for i, folder := range folders {
		place(t, folder, "AGENTS.md", "Heed the whole "+words[i]+".", "deep/AGENTS.md", "Heed the inner "+words[i]+".", "deep/core.txt", "A core.\n",
			".agents/skills/peel-"+words[i]+"/SKILL.md", skill("peel-"+words[i]), ".claude/commands/eat-"+words[i]+".md", "Eat it.\n")
		orders = append(orders, modelserver.Read(filepath.Join(folder, "deep", "core.txt")))
	}
	e := s.behind(t, noFiles)
	defer e.leave()
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, s.first)})
	require.NoError(t, err)
	turn := s.prompt(e, made.ID, asked, append(orders, modelserver.Say(answered))...)
	first, last := turn[0].Text(), turn[len(turn)-1].Text()
	first = strings.ReplaceAll(first, "\n    ", "\n") // some indent the instructions of MCP servers
	s.announced(e, made.ID)
	heard := e.heard(made.ID)
	var rows [][]string
	for i, folder := range folders {
		nested := filepath.Join(folder, "deep", "AGENTS.md")
		below := learned(strings.Count(last, "Heed the inner "+words[i]), 0)
		if strings.Contains(first, fmt.Sprintf("- %q: %q", filepath.Dir(nested), nested)) {
			below = "listed"
		}
		rows = append(rows, []string{
			[]string{s.subject.name, ""}[i], []string{"working directory", "another"}[i],
			learned(strings.Count(first, "Heed the whole "+words[i]), strings.Count(first, fmt.Sprintf("## Folder %d, %s: AGENTS.md", i, folder))),
			below,
			learned(strings.Count(first, "Peels with peel-"+words[i]), strings.Count(first,
				fmt.Sprintf("\n- peel-%s: Peels with peel-%[1]s.\n", words[i]))),
			map[bool]string{true: "offered", false: "–"}[strings.Contains(heard, `"name":"eat-`+words[i]+`"`)],
		})
	}
	return rows
}

// learned says from whom a model learned a text that it was told some times, some of them by
// acp-agent.
func learned(told, byProgram int) string {
	switch {
	case told == 0:
		return "–"
	case told > 1:
		return "**twice**"
	case byProgram == 1:
		return "acp-agent"
	}
	return "itself"
}

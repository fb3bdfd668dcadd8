package conform_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
)

func TestMain(m *testing.M) { proctest.Main(m, play) }

// answers are those of a small agent that does what the protocol says.
var answers = map[string]string{
	"initialize": `"result":{"protocolVersion":1,"agentInfo":{"name":"small","version":"1"},` +
		`"agentCapabilities":{}}`,
	"session/new":    `"result":{"sessionId":"%s"}`,
	"session/prompt": `"result":{"stopReason":"end_turn"}`,
}

// play is the small agent with one fault, which is its role.
func play(role string) int {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for n := 0; in.Scan(); n++ {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil || m.Method == "" {
			continue
		}
		outcome := answers[m.Method]
		if strings.Contains(outcome, "%s") {
			outcome = fmt.Sprintf(outcome, fmt.Sprint("session-", n))
		}
		if outcome == "" {
			outcome = `"error":{"code":-32601,"message":"unknown"}`
		}
		answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, outcome)
		if role == "wants a sign-in" && m.Method == "session/new" {
			answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"sign in"}}`+"\n", m.ID)
		}
		if role == "lists" {
			answer = strings.Replace(answer, `"agentCapabilities":{}`, `"agentCapabilities":{"sessionCapabilities":{"list":{}}}`, 1)
			if m.Method == "session/list" {
				answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"sessions":[{"sessionId":"theirs","cwd":"/private"}]}}`+"\n", m.ID)
			}
		}
		switch began := m.Method != "initialize"; {
		case role == "hangs at once", role == "hangs" && began:
			time.Sleep(time.Hour)
		case role == "ends at once", role == "ends" && m.Method == "session/new":
			fmt.Fprintln(os.Stderr, "out of luck with", os.Getenv("SMALL_TOKEN"))
			return 3
		case role == "prints rubbish":
			fmt.Print("Thinking…\n", answer)
		case role == "floods" && began:
			for {
				if _, err := fmt.Println(strings.Repeat("x", 1<<20)); err != nil {
					return 1
				}
			}
		case role == "answers twice":
			fmt.Print(answer, answer)
		case role == "echoes" && m.Method == "initialize":
			fmt.Print(strings.Replace(answer, `"small"`, `"\u001b[31m`+os.Getenv("SMALL_TOKEN")+`"`, 1))
		default:
			fmt.Print(answer)
		}
	}
	if role == "is cut short" {
		fmt.Print(`{"jsonrpc":"2.0","method":"session/upd`)
	}
	return 0
}

// check checks the small agent with a fault.
func check(t *testing.T, role string, only ...string) conform.Report {
	t.Helper()
	patience := volume.Patience
	if strings.HasPrefix(role, "hangs") {
		patience = 500 * time.Millisecond
	}
	report, err := conform.Run(t.Context(), conform.Options{
		Command: process.Command{
			Path: proctest.Executable(), Args: []string{"--"}, Env: append(proctest.Env(role), "SMALL_TOKEN=s3cret-s3cret"),
		},
		Only: only, Prompt: true, Patience: patience,
	})
	require.NoError(t, err)
	return report
}

func result(t *testing.T, r conform.Report, id string) conform.Result {
	t.Helper()
	for _, c := range r.Checks {
		if c.ID == id {
			return c
		}
	}
	require.Fail(t, "no check", id)
	return conform.Result{}
}

// Every check says what to do, and where it comes from.
func TestChecksAreComplete(t *testing.T) {
	checks, err := conform.Checks(nil)
	require.NoError(t, err)
	require.NotEmpty(t, checks)
	seen := map[string]bool{}
	for _, c := range checks {
		require.False(t, seen[c.ID], c.ID)
		seen[c.ID] = true
		require.NotEmpty(t, c.Sentence, c.ID)
		require.True(t, strings.HasPrefix(c.Link, "https://"), c.ID)
		require.Contains(t, []conform.Level{conform.Must, conform.Should, conform.May}, c.Level, c.ID)
	}
	some, err := conform.Checks([]string{"A4", "W2.batch"})
	require.NoError(t, err)
	for _, c := range some {
		require.True(t, strings.HasPrefix(c.ID, "A4.") || c.ID == "W2.batch", c.ID)
	}
	_, err = conform.Checks([]string{"A4", "Z9"})
	require.ErrorContains(t, err, `"Z9"`)
}

// An agent that offers nothing passes what everyone must do.
func TestSmallAgentPasses(t *testing.T) {
	r := check(t, "well")
	require.False(t, r.Failed(true), "%+v", failures(r))
	require.Equal(t, "small", r.AgentInfo.Name)
	require.Zero(t, r.Summary.FailMust+r.Summary.FailShould)
	require.Equal(t, conform.NotOffered, result(t, r, "A3.null-entry").Verdict)
	require.Equal(t, conform.NotOffered, result(t, r, "A10.load").Verdict)
	require.Equal(t, "it was accepted", result(t, r, "A4.cwd-relative").Reason)
	require.Equal(t, conform.Pass, result(t, r, "A4.cwd-relative").Verdict)
	for _, c := range r.Checks {
		require.Contains(t, []conform.Verdict{conform.Pass, conform.NotOffered, conform.NotTried}, c.Verdict, c.ID)
		if c.Verdict == conform.NotTried {
			require.NotEmpty(t, c.Reason, c.ID)
		}
	}
	require.Positive(t, r.Summary.Pass)
}

func failures(r conform.Report) (all []string) {
	for _, c := range r.Checks {
		if c.Verdict == conform.Fail {
			all = append(all, c.ID+": "+c.Reason)
		}
	}
	return all
}

// A broken agent ends in a report that says what is wrong with it.
func TestBrokenAgents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ role, id, reason, failure string }{
		{"hangs at once", "W10.version-1", "the agent did not start: no answer within 1.5s", "no answer"},
		{"hangs", "A9.new", "no answer within 500ms", "the agent ended or hung too often"},
		{"ends at once", "W10.version-1", "exit status 3: out of luck with [secret]", "the agent did not start: the process ended"},
		{"ends", "A9.new", "exit status 3: out of luck with [secret]", ""},
		{"prints rubbish", "W1.lines", "not a JSON object", ""},
		{"floods", "A9.new", "it wrote more than 32 MiB", "the agent ended or hung too often"},
		{"answers twice", "W1.answers", "there is no unanswered request with the id 1", ""},
	} {
		t.Run(c.role, func(t *testing.T) {
			t.Parallel()
			r := check(t, c.role)
			require.True(t, r.Failed(false))
			require.Contains(t, r.Failure, c.failure)
			failed := result(t, r, c.id)
			require.Equal(t, conform.Fail, failed.Verdict)
			require.Contains(t, failed.Reason, c.reason)
			var text bytes.Buffer
			require.NoError(t, r.Print(&text))
			require.Contains(t, text.String(), c.reason)
			require.NotContains(t, text.String(), "s3cret")
			require.Less(t, text.Len(), 64<<10)
		})
	}
}

// Without an account no session is made, so what is refused says nothing.
func TestSignIn(t *testing.T) {
	r := check(t, "wants a sign-in", "A9", "A4.cwd-relative")
	require.False(t, r.Failed(true))
	require.Equal(t, "the agent wants you to sign in first", result(t, r, "A9.unique").Reason)
	require.Equal(t, conform.NotTried, result(t, r, "A4.cwd-relative").Verdict)
}

// A list of the user's sessions is not shown, although it is what is wrong.
func TestSessionsOfTheUser(t *testing.T) {
	r := check(t, "lists", "A16.no-match")
	require.Equal(t, conform.Fail, result(t, r, "A16.no-match").Verdict)
	encoded, err := json.Marshal(r)
	require.NoError(t, err)
	require.NotContains(t, string(encoded), "private")
	require.Contains(t, string(encoded), "and 1 sessions of others")
}

// We end the agent, so half a message at the end is not its fault.
func TestCutShort(t *testing.T) {
	require.False(t, check(t, "is cut short", "A9", "W1").Failed(true))
}

// Whoever selects only checks of everything that is sent gets a session that something is sent in.
func TestOnlyOfEverything(t *testing.T) {
	require.True(t, check(t, "prints rubbish", "W1").Failed(false))
}

// The report is about the agent alone: it has no secrets, escape sequences or directories.
func TestReport(t *testing.T) {
	r := check(t, "echoes", "W10", "A9", "A4.cwd-tilde")
	var text bytes.Buffer
	require.NoError(t, r.Print(&text))
	encoded, err := json.Marshal(r)
	require.NoError(t, err)
	unit, err := r.JUnit(false)
	require.NoError(t, err)
	for _, form := range []string{text.String(), string(encoded), string(unit)} {
		require.NotContains(t, form, "s3cret")
		require.NotContains(t, form, "\x1b")
		require.NotContains(t, form, "acp-agent-conform")
		require.Contains(t, form, "A4.cwd-tilde")
	}
	require.Contains(t, text.String(), time.Now().UTC().Format("2006-01"))
	var suite struct {
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Cases    []struct{} `xml:"testcase"`
	}
	require.NoError(t, xml.Unmarshal(unit, &suite))
	require.Len(t, suite.Cases, suite.Tests)
	require.Len(t, r.Checks, suite.Tests)
	require.Equal(t, r.Summary.FailMust, suite.Failures)
}

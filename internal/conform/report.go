package conform

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/conform/schema"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Report says what all checks of a run came to.
type Report struct {
	// Format is the version of the JSON.
	Format int `json:"format"`
	// Date is the day of the run, AcpAgent the version of acp-agent, Schema that of the schema.
	Date     string `json:"date"`
	AcpAgent string `json:"acpAgent"`
	Schema   string `json:"schema"`
	// Command is the command line of the agent, without secrets.
	Command []string `json:"command,omitempty"`
	// AgentInfo is the agent, or the editor that was checked.
	AgentInfo       info            `json:"agentInfo"`
	ProtocolVersion json.RawMessage `json:"protocolVersion,omitempty"`
	// Failure says why the agent could not be checked to the end.
	Failure string   `json:"failure,omitempty"`
	Summary Summary  `json:"summary"`
	Checks  []Result `json:"checks"`
}

// Summary counts the checks.
type Summary struct {
	Pass       int `json:"pass"`
	FailMust   int `json:"failMust"`
	FailShould int `json:"failShould"`
	Noted      int `json:"noted"` // of those that pass
	NotOffered int `json:"notOffered"`
	NotTried   int `json:"notTried"`
}

// info says who takes part in a connection.
type info struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

func newReport(version string) Report {
	return Report{
		Format: 1, Date: time.Now().UTC().Format(time.DateOnly), AcpAgent: version,
		Schema: schema.Version,
	}
}

func (r *run) report() Report {
	report := newReport(r.Version)
	report.ProtocolVersion = r.intro.ProtocolVersion
	if r.failed != nil {
		report.Failure = r.shown(r.failed.Error())
	}
	report.AgentInfo = info{r.shown(r.intro.AgentInfo.Name), r.shown(r.intro.AgentInfo.Version)}
	for _, word := range append([]string{r.Command.Path}, r.Command.Args...) {
		report.Command = append(report.Command, r.shown(word))
	}
	for _, row := range r.rows {
		if row.chosen {
			report.Checks = append(report.Checks, r.results[row.ID])
		}
	}
	report.count()
	return report
}

// count sums up the checks.
func (r *Report) count() {
	s := Summary{}
	for _, c := range r.Checks {
		switch {
		case c.Verdict == Pass && c.Reason != "":
			s.Noted++
			fallthrough
		case c.Verdict == Pass:
			s.Pass++
		case c.Verdict == NotOffered:
			s.NotOffered++
		case c.Verdict == NotTried:
			s.NotTried++
		case c.Level == Must:
			s.FailMust++
		default:
			s.FailShould++
		}
	}
	r.Summary = s
}

// Failed reports whether the agent fails what the protocol demands, or with strict what it
// recommends.
func (r Report) Failed(strict bool) bool {
	return r.Failure != "" || r.Summary.FailMust > 0 || strict && r.Summary.FailShould > 0
}

// name returns the name and version of the agent, "" if they are not known.
func (r Report) name() string {
	return strings.TrimSpace(r.AgentInfo.Name + " " + r.AgentInfo.Version)
}

// Print writes the report as text: a summary, the failures, and a table of all checks.
func (r Report) Print(w io.Writer) (err error) {
	say := func(mark, format string, args ...any) {
		err = cmp.Or(err, terminal.Item(w, mark, text.Plain(fmt.Sprintf(format, args...))))
	}
	s := r.Summary
	say("", "%s, checked on %s by acp-agent %s with schema %s",
		cmp.Or(r.name(), strings.Join(r.Command, " ")), r.Date, r.AcpAgent, r.Schema)
	say("", "%d pass (%d with a note), %d fail a MUST, %d fail a SHOULD, %d not offered, "+
		"%d not tried", s.Pass, s.Noted, s.FailMust, s.FailShould, s.NotOffered, s.NotTried)
	if r.Failure != "" {
		say("✗ ", "%s", r.Failure)
	}
	say("", "")
	table := terminal.NewTable(w, "CHECK", "VERDICT", "LEVEL", "WHAT THE AGENT DOES", "REMARK")
	for _, c := range r.Checks {
		if c.Verdict == Fail {
			say("✗ ", "%s (%s): %s", c.ID, c.Level, c.Sentence)
			for _, line := range c.details() {
				say("  ", "%s", line)
			}
		}
		if c.Verdict != NotTried || c.Reason != r.Failure { // which was said
			table.Row(c.ID, c.Verdict, c.Level, c.Sentence, text.Plain(c.Reason))
		}
	}
	if s.FailMust+s.FailShould > 0 {
		say("", "")
	}
	return cmp.Or(err, table.Print())
}

// details says why a check failed, with the lines that show it.
func (c Result) details() []string {
	lines := []string{"but: " + c.Reason}
	for _, line := range c.Sent {
		lines = append(lines, "sent: "+line)
	}
	for _, line := range c.Received {
		lines = append(lines, "received: "+line)
	}
	return append(lines, c.Link)
}

// Markdown returns the report as a list, and what a person does next for what was not tried.
func (r Report) Markdown() string {
	var b strings.Builder
	var steps []string
	for _, c := range r.Checks {
		mark, why := "✓", ""
		switch c.Verdict {
		case Fail:
			mark, why = "✗", ": "+c.Reason
		case NotTried:
			mark = "–"
			if c.Reason != "" && !slices.Contains(steps, c.Reason) {
				steps = append(steps, c.Reason)
			}
		}
		fmt.Fprintf(&b, "- %s %s (%s): %s%s\n", mark, c.ID, c.Level, c.Sentence, why)
	}
	if steps != nil {
		b.WriteString("\nNext:\n\n1. " + strings.Join(steps, "\n1. ") + "\n")
	}
	return b.String()
}

// message is an element of JUnit with a text.
type message struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit returns the report in the format of JUnit, which CI systems read. A failed SHOULD is
// skipped unless strict.
func (r Report) JUnit(strict bool) ([]byte, error) {
	type testCase struct {
		ClassName string   `xml:"classname,attr"`
		Name      string   `xml:"name,attr"`
		Failure   *message `xml:"failure"`
		Skipped   *message `xml:"skipped"`
	}
	suite := struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Time     string     `xml:"timestamp,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Cases    []testCase `xml:"testcase"`
	}{Name: r.name(), Time: r.Date + "T00:00:00", Tests: len(r.Checks)}
	for _, c := range r.Checks {
		clause, _, _ := strings.Cut(c.ID, ".")
		of := testCase{ClassName: clause, Name: c.ID + ": " + c.Sentence}
		about := &message{c.Reason, strings.Join(c.details()[1:], "\n")}
		switch {
		case c.Verdict == Fail && (c.Level == Must || strict):
			of.Failure = about
			suite.Failures++
		case c.Verdict != Pass:
			of.Skipped = &message{Message: fmt.Sprintf("%s: %s", c.Verdict, c.Reason)}
			suite.Skipped++
		}
		suite.Cases = append(suite.Cases, of)
	}
	body, err := xml.MarshalIndent(suite, "", "  ")
	return append([]byte(xml.Header), append(body, '\n')...), err
}

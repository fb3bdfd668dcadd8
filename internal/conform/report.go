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

// format is the version of the JSON of a [Report].
const format = 1

// Report says what all checks of a run came to.
type Report struct {
	Format int `json:"format"`
	// Date is the day of the run, AcpAgent the version of acp-agent, Schema that of the schema.
	Date     string `json:"date"`
	AcpAgent string `json:"acpAgent"`
	Schema   string `json:"schema"`
	// Command is the command line of the agent, without secrets.
	Command   []string `json:"command"`
	AgentInfo struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"agentInfo"`
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

func (r *run) report() Report {
	report := Report{
		Format: format, Date: time.Now().UTC().Format(time.DateOnly), AcpAgent: r.Version,
		Schema: schema.Version, ProtocolVersion: r.intro.ProtocolVersion,
	}
	if r.failed != nil {
		report.Failure = r.shown(r.failed.Error())
	}
	report.AgentInfo.Name = r.shown(r.intro.AgentInfo.Name)
	report.AgentInfo.Version = r.shown(r.intro.AgentInfo.Version)
	for _, word := range append([]string{r.Command.Path}, r.Command.Args...) {
		report.Command = append(report.Command, r.shown(word))
	}
	for _, row := range r.rows {
		result := r.results[row.ID]
		report.Checks = append(report.Checks, result)
		report.Summary.count(result)
	}
	return report
}

func (s *Summary) count(r Result) {
	switch {
	case r.Verdict == Pass:
		s.Pass++
		if r.Reason != "" {
			s.Noted++
		}
	case r.Verdict == NotOffered:
		s.NotOffered++
	case r.Verdict == NotTried:
		s.NotTried++
	case r.Level == Must:
		s.FailMust++
	default:
		s.FailShould++
	}
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
func (r Report) Print(w io.Writer) error {
	s := r.Summary
	err := terminal.Say(w, "%s, checked on %s by acp-agent %s with schema %s\n", text.Plain(
		cmp.Or(r.name(), strings.Join(r.Command, " "))), r.Date, r.AcpAgent, r.Schema)
	if err == nil {
		err = terminal.Say(w, "%d pass (%d with a note), %d fail a MUST, %d fail a SHOULD, "+
			"%d not offered, %d not tried\n", s.Pass, s.Noted, s.FailMust, s.FailShould,
			s.NotOffered, s.NotTried)
	}
	if err == nil && r.Failure != "" {
		err = terminal.Item(w, "✗ ", text.Plain(r.Failure))
	}
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	for _, c := range r.Checks {
		if c.Verdict != Fail || err != nil {
			continue
		}
		err = terminal.Item(w, "✗ ", fmt.Sprintf("%s (%s): %s", c.ID, c.Level, c.Sentence))
		for _, line := range slices.Concat([]string{"but: " + c.Reason}, prefixed("sent: ", c.Sent),
			prefixed("received: ", c.Received), []string{c.Link}) {
			if err == nil {
				err = terminal.Item(w, "  ", text.Plain(line))
			}
		}
	}
	if err != nil {
		return err
	}
	if s.FailMust+s.FailShould > 0 {
		_, _ = fmt.Fprintln(w)
	}
	table := terminal.NewTable(w, "CHECK", "VERDICT", "LEVEL", "WHAT THE AGENT DOES", "REMARK")
	for _, c := range r.Checks {
		if c.Verdict != NotTried || c.Reason != r.Failure { // which was said
			table.Row(c.ID, c.Verdict, c.Level, c.Sentence, text.Plain(c.Reason))
		}
	}
	return table.Print()
}

func prefixed(prefix string, lines []string) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = prefix + line
	}
	return all
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
		lines := slices.Concat(c.Sent, c.Received, []string{c.Link})
		about := &message{c.Reason, strings.Join(lines, "\n")}
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

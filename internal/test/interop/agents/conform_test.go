package agents

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/text"
)

// conforming has a file for each agent with the report of acp-agent conform.
const conforming = "testdata/conform"

// TestConform checks every agent, and records the reports and the table of the page.
func TestConform(t *testing.T) {
	onlyInSurvey(t)
	ran := t.Run("agents", func(t *testing.T) {
		for _, s := range surveyed {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				recordReport(t, s)
			})
		}
	})
	require.True(t, ran, "the table was not written: an agent could not be checked")
	writeConformTable(t)
}

// recordReport checks an agent and records the report.
func recordReport(t *testing.T, s subject) {
	stage := onStage(t, s)
	report, err := conform.Run(t.Context(), conform.Options{
		Command: process.Command{
			Path: filepath.Join(stage.home, "bin", s.command[0]), Args: s.command[1:], Env: stage.env,
			Dir: stage.cwd,
		},
		Prompt: true, Draft: true, Patience: time.Minute, // others use the machine
	})
	require.NoError(t, err)
	require.Empty(t, report.Failure)
	report.Command[0] = s.command[0]
	writeReport(t, s, report)
}

// writeReport records a report, without the checks of which there is nothing to say. What was sent
// is kept for failures.
func writeReport(t *testing.T, s subject, report conform.Report) {
	report.Checks = slices.DeleteFunc(report.Checks, func(c conform.Result) bool {
		return c.Verdict == conform.NotOffered || c.Verdict == conform.Pass && c.Reason == ""
	})
	for i, c := range report.Checks {
		if c.Verdict == conform.Pass {
			report.Checks[i].Sent, report.Checks[i].Received = nil, nil
		}
	}
	text, err := json.MarshalIndent(report, "", "\t")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(conforming, 0o755))
	require.NoError(t, os.WriteFile(reportOf(s), append(text, '\n'), 0o644))
}

// reportOf returns the file with the report of an agent.
func reportOf(s subject) string {
	name := strings.NewReplacer(" ", "_", ",", "", "'", "").Replace(s.name)
	return filepath.Join(conforming, name+".json")
}

// The part of docs/agents-compared.md with what agents do differently.
const (
	beginChecks = "<!-- make interop-agents writes what follows of the protocol -->\n"
	endChecks   = "<!-- end of the checks -->\n"
)

// The table of the page is made from the reports. ACP_AGENT_UPDATE=1 rewrites it.
func TestConformTable(t *testing.T) {
	if os.Getenv("ACP_AGENT_UPDATE") != "" {
		writeConformTable(t)
	}
	head, table, tail := conformPage(t)
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, head+table+tail, string(content), "make interop-agents writes the table")
}

// writeConformTable writes the table.
func writeConformTable(t *testing.T) {
	head, table, tail := conformPage(t)
	require.NoError(t, os.WriteFile(page, []byte(head+table+tail), 0o644))
}

// conformPage returns the page around the table, and the table.
func conformPage(t *testing.T) (head, table, tail string) {
	t.Helper()
	table = headingOf([]string{"agent", "version", "day", "passes", "differs"})
	for _, s := range surveyed {
		raw, err := os.ReadFile(reportOf(s))
		require.NoError(t, err)
		var report conform.Report
		require.NoError(t, json.Unmarshal(raw, &report))
		var differs []string
		for _, c := range report.Checks {
			if c.Verdict == conform.Fail && !c.Draft {
				differs = append(differs, fmt.Sprintf("`%s` (%s): %s", c.ID, c.Level, cell(c.Reason)))
			}
		}
		table += row([]string{
			s.name, report.AgentInfo.Version, report.Date, fmt.Sprint(report.Summary.Pass),
			cmp.Or(strings.Join(differs, "<br>"), "–"),
		})
	}
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, opened := strings.Cut(string(content), beginChecks)
	_, tail, closed := strings.Cut(rest, endChecks)
	require.True(t, opened && closed, "%s has no place for the table", page)
	return head + beginChecks, table, endChecks + tail
}

// cell returns a short text for a cell of a table in Markdown.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;").Replace(text.Line(s, 160))
}

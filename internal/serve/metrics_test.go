package serve

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Clause N4.
func TestMetricsCountWhatServersDo(t *testing.T) {
	m := newMetrics("1.2.3")
	for _, took := range []time.Duration{time.Millisecond, 3 * time.Millisecond, time.Hour} {
		m.observe(acp.RequestEvent{Method: "session/prompt", Duration: took})
	}
	m.observe(acp.RequestEvent{Method: "session/load", Err: errors.New("no")})
	m.observe(acp.RequestEvent{Method: "any\"\n{", Err: errors.New("no")})
	m.observe(acp.OpenEvent{})
	m.observe(acp.AnswerEvent{Choice: "allow_once"})
	m.observe(acp.AnswerEvent{Choice: "allow_once", Late: true})
	m.observe(acp.AnswerEvent{Choice: "\n"})
	for i := range 30 {
		m.observe(acp.UsageEvent{Charges: []sessionstore.Charge{
			{Meter: sessionstore.CostMeter, Unit: fmt.Sprintf("C%02d", i), Amount: 0.5},
			{Meter: sessionstore.InputMeter, Amount: 1e6}, {Meter: sessionstore.TurnMeter, Amount: 1},
		}})
	}
	m.reject()
	got := m.text(usage{Limits: acp.Limits{Connections: 3, Sessions: 2, Turns: 1},
		children: 4, lost: 5, unconfirmed: 6, store: 1})
	alerts := dirtest.Read(t, "../../docs/operating/deploy/alerts.yaml")
	for _, name := range regexp.MustCompile(`\b(acp_agent|process)_\w+`).FindAllString(alerts, -1) {
		require.Contains(t, got, "\n"+name)
	}
	for _, want := range []string{
		`acp_agent_build_info{version="1.2.3",goversion="` + runtime.Version() + `"} 1`,
		"acp_agent_child_processes 4", "acp_agent_lost_connections 5", "acp_agent_unconfirmed_bytes 6",
		"acp_agent_store_usable 1",
		`acp_agent_cost_total{currency="C19"} 0.5`, `acp_agent_cost_total{currency="other"} 5`,
		`acp_agent_tokens_total{kind="input"} 30000000`,
		"acp_agent_connections 3", "acp_agent_sessions 2", "acp_agent_turns 1",
		"acp_agent_sessions_opened_total 1", "acp_agent_connections_rejected_total 1",
		`acp_agent_permission_answers_total{answer="allow_once"} 1`,
		`acp_agent_permission_answers_total{answer="other"} 1`,
		`acp_agent_request_duration_seconds_bucket{method="session/prompt",result="ok",le="0.001"} 1`,
		`acp_agent_request_duration_seconds_bucket{method="session/prompt",result="ok",le="0.005"} 2`,
		`acp_agent_request_duration_seconds_bucket{method="session/prompt",result="ok",le="1800"} 2`,
		`acp_agent_request_duration_seconds_bucket{method="session/prompt",result="ok",le="+Inf"} 3`,
		`acp_agent_request_duration_seconds_sum{method="session/prompt",result="ok"} 3600.004`,
		`acp_agent_request_duration_seconds_count{method="session/prompt",result="ok"} 3`,
		`acp_agent_request_duration_seconds_count{method="session/load",result="error"} 1`,
		`acp_agent_request_duration_seconds_count{method="other",result="error"} 1`,
	} {
		require.Contains(t, "\n"+got, "\n"+want+"\n")
	}
	line := regexp.MustCompile(`^(# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"\\]*"(,\w+="[^"\\]*")*\})? [0-9.e+]+)$`)
	for text := range strings.Lines(got) {
		require.Regexp(t, line, strings.TrimSuffix(text, "\n"))
	}
}

func TestOpenFilesAreCounted(t *testing.T) {
	before, most, ok := openFiles()
	if !ok {
		t.Skip("only Linux tells")
	}
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer file.Close()
	after, _, _ := openFiles()
	require.Greater(t, after, before)
	require.Greater(t, most, after)
}

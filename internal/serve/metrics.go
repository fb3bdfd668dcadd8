package serve

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// metrics counts what a server does, and shows it in the text format of Prometheus. Its
// methods are safe for concurrent use.
type metrics struct {
	version string

	mu       sync.Mutex
	requests map[string]*histogram // by their labels
	opened   int                   // sessions
	rejected int                   // connections
	answers  map[string]float64    // permission requests, by the user's choice
	cost     map[string]float64    // by currency
	tokens   map[string]float64    // by kind
}

// maxCurrencies is how many currencies are counted apart. Agents may report any.
const maxCurrencies = 20

// usage says what a server does at one time.
type usage struct {
	acp.Limits
	children    int // processes, -1 if the system does not tell
	lost        int // connections that can be resumed
	unconfirmed int // bytes sent to clients
	store       int // 1 if the session store can be used, otherwise 0
}

// countedMethods are the methods whose requests are counted apart. Clients may send any method.
var countedMethods = [...]string{
	protocol.Initialize, protocol.Authenticate, protocol.SessionNew, protocol.SessionLoad,
	protocol.SessionResume, protocol.SessionFork, protocol.SessionList, protocol.SessionClose,
	protocol.SessionDelete, protocol.SessionPrompt, protocol.SessionSetMode,
	protocol.SessionSetConfigOption, protocol.SessionSetTitle, protocol.SessionSetModel,
}

// countChildren returns how many child processes this process has, -1 if the system does not tell,
// as only Linux does.
func countChildren() (n int) {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	if len(lists) == 0 {
		return -1
	}
	for _, list := range lists {
		ids, _ := os.ReadFile(list) // fails if the thread has just ended
		n += len(bytes.Fields(ids))
	}
	return n
}

// maxOpenFiles is the line of /proc/self/limits with the number of open files.
var maxOpenFiles = text.Pattern(`(?m)^Max open files +(\d+)`)

// openFiles returns how many files this process has open, and how many it may. It returns false if
// the system does not tell, as only Linux does.
func openFiles() (opened, most int, ok bool) {
	entries, err := os.ReadDir("/proc/self/fd")
	limits, _ := os.ReadFile("/proc/self/limits")
	found := maxOpenFiles().FindSubmatch(limits)
	if err != nil || found == nil {
		return 0, 0, false
	}
	most, err = strconv.Atoi(string(found[1]))
	return len(entries) - 1, most, err == nil // without that of the directory
}

func newMetrics(version string) *metrics {
	return &metrics{version: version, requests: map[string]*histogram{},
		answers: map[string]float64{}, cost: map[string]float64{}, tokens: map[string]float64{}}
}

func (m *metrics) observe(e acp.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e := e.(type) {
	case acp.RequestEvent:
		method, result := "other", "ok"
		if slices.Contains(countedMethods[:], e.Method) {
			method = e.Method
		}
		if e.Err != nil {
			result = "error"
		}
		labels := fmt.Sprintf("method=%q,result=%q", method, result)
		if m.requests[labels] == nil {
			m.requests[labels] = &histogram{}
		}
		m.requests[labels].add(e.Duration)
	case acp.OpenEvent:
		m.opened++
	case acp.AnswerEvent:
		if !e.Late { // it was no answer
			m.answers[answerName(e.Choice)]++
		}
	case acp.UsageEvent:
		for _, c := range e.Charges {
			m.chargeLocked(c)
		}
	}
}

// chargeLocked counts what a session has used.
func (m *metrics) chargeLocked(c sessionstore.Charge) {
	switch {
	case c.Amount == 0:
	case c.Meter == sessionstore.CostMeter:
		unit := c.Unit
		if _, known := m.cost[unit]; !known && len(m.cost) >= maxCurrencies {
			unit = "other"
		}
		m.cost[unit] += c.Amount
	case slices.Contains(sessionstore.TokenMeters(), c.Meter):
		m.tokens[string(c.Meter)] += c.Amount
	}
}

// answerName returns the name of an answer to a permission request.
func answerName(choice string) string {
	switch choice {
	case "allow_once", "allow_always", "reject_once", "reject_always":
		return choice
	case "":
		return "none"
	}
	return "other"
}

// reject counts a connection that was refused.
func (m *metrics) reject() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rejected++
}

// text returns all metrics, of a server that does something now.
func (m *metrics) text(now usage) string {
	var b strings.Builder
	family := func(name, kind, help string) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	single := func(name, kind, help string, value int) {
		family(name, kind, help)
		fmt.Fprintf(&b, "%s %d\n", name, value)
	}
	single("acp_agent_connections", "gauge", "Connections of clients.", now.Connections)
	single("acp_agent_lost_connections", "gauge",
		"Connections whose network failed and that may be resumed.", now.lost)
	single("acp_agent_unconfirmed_bytes", "gauge",
		"Bytes sent to clients, or waiting for them, that they have not confirmed.",
		now.unconfirmed)
	single("acp_agent_sessions", "gauge", "Open sessions.", now.Sessions)
	single("acp_agent_turns", "gauge", "Prompts without an answer, running or waiting.", now.Turns)
	if now.children >= 0 {
		single("acp_agent_child_processes", "gauge",
			"Running agents, MCP servers and commands of models.", now.children)
	}
	single("acp_agent_store_usable", "gauge", "1 if the session store can be used, otherwise 0.",
		now.store)
	if opened, most, ok := openFiles(); ok {
		single("process_open_fds", "gauge", "Open file descriptors.", opened)
		single("process_max_fds", "gauge", "Maximum number of open file descriptors.", most)
	}
	const build = "acp_agent_build_info"
	family(build, "gauge", "The version of the program.")
	fmt.Fprintf(&b, "%s{version=%q,goversion=%q} 1\n", build, m.version, runtime.Version())

	m.mu.Lock()
	defer m.mu.Unlock()
	single("acp_agent_sessions_opened_total", "counter", "Sessions opened.", m.opened)
	single("acp_agent_connections_rejected_total", "counter",
		"Connections refused, such as those without a valid token.", m.rejected)
	sums := func(name, help, label string, values map[string]float64) {
		family(name, "counter", help)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			fmt.Fprintf(&b, "%s{%s=%q} %s\n", name, label, key,
				strconv.FormatFloat(values[key], 'f', -1, 64))
		}
	}
	sums("acp_agent_permission_answers_total", "Answers to permission requests.", "answer",
		m.answers)
	sums("acp_agent_cost_total", "What sessions have cost, as reported by their agents.",
		"currency", m.cost)
	sums("acp_agent_tokens_total", "Tokens that sessions have used, as reported by their agents.",
		"kind", m.tokens)
	const requests = "acp_agent_request_duration_seconds"
	family(requests, "histogram", "Time to answer requests. Those of session/prompt are turns.")
	for _, labels := range slices.Sorted(maps.Keys(m.requests)) {
		m.requests[labels].write(&b, requests, labels)
	}
	return b.String()
}

// buckets are the upper bounds of a histogram's buckets, in seconds. Turns take the longest.
var buckets = [...]float64{.001, .005, .02, .1, .5, 2, 10, 60, 300, 1800}

type histogram struct {
	counts [len(buckets) + 1]int // of values up to each bound, and of greater ones
	sum    time.Duration
}

func (h *histogram) add(d time.Duration) {
	i, _ := slices.BinarySearch(buckets[:], d.Seconds())
	h.counts[i]++
	h.sum += d
}

func (h *histogram) write(b *strings.Builder, name, labels string) {
	n := 0
	for i, count := range h.counts {
		n += count
		bound := "+Inf"
		if i < len(buckets) {
			bound = fmt.Sprint(buckets[i])
		}
		fmt.Fprintf(b, "%s_bucket{%s,le=%q} %d\n", name, labels, bound, n)
	}
	fmt.Fprintf(b, "%s_sum{%s} %g\n%s_count{%s} %d\n",
		name, labels, h.sum.Seconds(), name, labels, n)
}

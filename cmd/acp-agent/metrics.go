package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/protocol"
)

// serverMetrics counts what a server does, and shows it in the text format of Prometheus. Its
// methods are safe for concurrent use.
type serverMetrics struct {
	load func() serverLoad

	mu       sync.Mutex
	requests histograms
	store    histograms
	answers  map[string]int // permission requests, by the user's choice
	opened   int            // sessions
	rejected int            // connections
}

// serverLoad is what a server does at one time.
type serverLoad struct {
	acp.Limits
	children    int // processes, -1 if the system does not tell
	lost        int // connections that can be resumed
	unconfirmed int // bytes sent to clients
}

// countedMethods are the methods whose requests are counted apart. Clients may send any method.
var countedMethods = [...]string{
	protocol.Initialize, protocol.Authenticate, protocol.SessionNew, protocol.SessionLoad,
	protocol.SessionResume, protocol.SessionFork, protocol.SessionList, protocol.SessionClose,
	protocol.SessionDelete, protocol.SessionPrompt, protocol.SessionSetMode,
	protocol.SessionSetConfigOption, protocol.SessionSetTitle, protocol.SessionSetModel,
}

// buckets are the upper bounds of a histogram's buckets, in seconds. Turns take the longest.
var buckets = [...]float64{.001, .005, .02, .1, .5, 2, 10, 60, 300, 1800}

type histogram struct {
	counts [len(buckets) + 1]int // of values up to each bound, and of greater ones
	sum    time.Duration
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

// histograms are those of one metric, by their labels.
type histograms map[string]*histogram

// add counts a duration.
func (h histograms) add(labels string, d time.Duration) {
	one := h[labels]
	if one == nil {
		one = &histogram{}
		h[labels] = one
	}
	i, _ := slices.BinarySearch(buckets[:], d.Seconds())
	one.counts[i]++
	one.sum += d
}

// write writes the samples of all.
func (h histograms) write(b *strings.Builder, name string) {
	for _, labels := range slices.Sorted(maps.Keys(h)) {
		h[labels].write(b, name, labels)
	}
}

func newMetrics(load func() serverLoad) *serverMetrics {
	return &serverMetrics{
		load: load, requests: histograms{}, store: histograms{}, answers: map[string]int{},
	}
}

// observe counts an event.
func (m *serverMetrics) observe(e acp.Event) {
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
		m.requests.add(fmt.Sprintf("method=%q,result=%q", method, result), e.Duration)
	case acp.OpenEvent:
		m.opened++
	case acp.AnswerEvent:
		m.answers[answerName(e.Choice)]++
	}
}

// stored counts an operation of the session store.
func (m *serverMetrics) stored(operation string, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store.add(fmt.Sprintf("operation=%q", operation), d)
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
func (m *serverMetrics) reject() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rejected++
}

// listen serves the metrics on addr, and returns the address, until the caller calls end.
func (m *serverMetrics) listen(
	ctx context.Context, addr string,
) (address net.Addr, end func(), err error) {
	listener, err := listenTCP(ctx, "--metrics", addr)
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m)
	server := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	return listener.Addr(), func() {
		_ = server.Close()
		serving.Wait()
	}, nil
}

// ServeHTTP implements [http.Handler].
func (m *serverMetrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = io.WriteString(w, m.String())
}

// String returns all metrics.
func (m *serverMetrics) String() string {
	var b strings.Builder
	family := func(name, kind, help string) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	single := func(name, kind, help string, value int) {
		family(name, kind, help)
		fmt.Fprintf(&b, "%s %d\n", name, value)
	}
	load := m.load()
	single("acp_agent_connections", "gauge", "Connections of clients.", load.Connections)
	single("acp_agent_lost_connections", "gauge",
		"Connections whose network failed and that may be resumed.", load.lost)
	single("acp_agent_unconfirmed_bytes", "gauge",
		"Bytes sent to clients, or waiting for them, that they have not confirmed.", load.unconfirmed)
	single("acp_agent_sessions", "gauge", "Open sessions.", load.Sessions)
	single("acp_agent_turns", "gauge", "Prompts without an answer, running or waiting.", load.Turns)
	if load.children >= 0 {
		single("acp_agent_child_processes", "gauge",
			"Running agents, MCP servers and commands of models.", load.children)
	}
	single("go_goroutines", "gauge", "Goroutines.", runtime.NumGoroutine())

	m.mu.Lock()
	defer m.mu.Unlock()
	single("acp_agent_sessions_opened_total", "counter", "Sessions opened.", m.opened)
	single("acp_agent_connections_rejected_total", "counter",
		"Connections refused, such as those without a valid token.", m.rejected)
	const answers = "acp_agent_permission_answers_total"
	family(answers, "counter", "Answers to permission requests.")
	for _, choice := range slices.Sorted(maps.Keys(m.answers)) {
		fmt.Fprintf(&b, "%s{answer=%q} %d\n", answers, choice, m.answers[choice])
	}
	const requests = "acp_agent_request_duration_seconds"
	family(requests, "histogram", "Time to answer requests. Those of session/prompt are turns.")
	m.requests.write(&b, requests)
	const store = "acp_agent_store_duration_seconds"
	family(store, "histogram", "Time of operations of the session store.")
	m.store.write(&b, store)
	return b.String()
}

// write writes the samples of a histogram.
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
	fmt.Fprintf(b, "%s_sum{%s} %g\n%s_count{%s} %d\n", name, labels, h.sum.Seconds(), name, labels, n)
}

package bench

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/interop/stock"
)

var (
	record = flag.String("growth", "", "the file in which BenchmarkGrowth records what it measures")
	large  = flag.Bool("large", false, "BenchmarkGrowth also measures a store of 1 GB")
)

// repeats is how often each operation is measured.
const repeats = 7

// BenchmarkGrowth measures each operation on more and more of what it should not, or only in
// proportion, depend on. It records the measurements.
func BenchmarkGrowth(b *testing.B) {
	if *record == "" {
		b.Skip("runs with -growth FILE, as make growth does")
	}
	program := build(b, "cmd/acp-agent")
	b.Setenv("ACP_AGENT_REPLAY_RATE", "-1")
	var all []measurement
	for _, g := range growths(*large) {
		for _, size := range g.sizes {
			b.Run(fmt.Sprint(g.name, size), func(b *testing.B) {
				s := &subject{b: b, dir: b.TempDir(), samples: newSamples()}
				s.roots = []string{s.folder("root")}
				g.prepare(s, size)
				s.index(program)
				s.agent = read(b, program, "--state-dir", s.state())
				s.measure()
				all = append(all, s.medians(g.name, size)...)
			})
		}
	}
	check(b, writeRecord(*record, all))
}

// growth is what grows, to some sizes.
type growth struct {
	name    string
	sizes   []int
	prepare func(s *subject, size int)
}

// growths returns what is measured. large adds a store of 1 GB.
func growths(large bool) []growth {
	megabytes := []int{10, 100}
	if large {
		megabytes = append(megabytes, 1000)
	}
	files := []int{1_000, 20_000, 200_000}
	return []growth{
		{"store", megabytes, storeOf},
		{"session", megabytes, sessionOf},
		{"folders", []int{1, 8, 64}, foldersOf},
		{"files", files, filesOf},
		{"skills", []int{1, 20, 200}, skillsOf},
	}
}

// subject is what operations are measured on.
type subject struct {
	b        *testing.B
	dir      string
	agent    *wireline
	requests int // so far
	roots    []string
	searches bool     // searches are measured, too
	stored   []string // sessions to use, of which the last ones are deleted; without them new ones
	*samples
}

func (s *subject) state() string { return filepath.Join(s.dir, "state") }

// folder makes a directory with a few files.
func (s *subject) folder(name string) string {
	dir := filepath.Join(s.dir, name)
	check(s.b, os.MkdirAll(dir, 0o755))
	for i := range 10 {
		s.write(filepath.Join(dir, fmt.Sprint("file", i)), "some text\n")
	}
	return dir
}

func (s *subject) write(path, text string) {
	check(s.b, os.MkdirAll(filepath.Dir(path), 0o755))
	check(s.b, os.WriteFile(path, []byte(text), 0o644))
}

// perMB is the number of messages in a megabyte of history.
const perMB = 5_500

// stock stores sessions with histories of some megabytes.
func (s *subject) stock(sessions, megabytes int) (ids []string) {
	store := stock.Open(s.state())
	for i := range sessions {
		id := fmt.Sprint("stocked-", i)
		check(s.b, store.Session(s.b.Context(),
			stock.Session{ID: id, Cwd: s.roots[0], Messages: megabytes * perMB}))
		ids = append(ids, id)
	}
	check(s.b, store.Close())
	return ids
}

// index indexes the histories, as the ends of their turns would have done.
func (s *subject) index(program string) {
	search := exec.Command(program, "sessions", "search", "nothing", "--state-dir", s.state())
	if output, err := search.CombinedOutput(); err != nil {
		s.b.Fatalf("%v: %s", err, output)
	}
}

func storeOf(s *subject, megabytes int)   { s.stock(megabytes/5, 5) }
func sessionOf(s *subject, megabytes int) { s.stored = s.stock(4, megabytes) }

func foldersOf(s *subject, folders int) {
	for i := range folders - 1 {
		s.roots = append(s.roots, s.folder(fmt.Sprint("root", i)))
	}
}

func filesOf(s *subject, files int) {
	for i := range files {
		name := fmt.Sprintf("d%d/e%d/file%d", i/5_000, i/100%50, i)
		s.write(filepath.Join(s.roots[0], name), "some text\n")
	}
	s.searches = true
}

func skillsOf(s *subject, skills int) {
	for i := range skills {
		s.write(filepath.Join(s.roots[0], ".agents/skills", fmt.Sprint("skill-", i), "SKILL.md"),
			fmt.Sprintf("---\nname: skill-%d\ndescription: Skill number %d.\n---\n%s\n", i, i,
				strings.Repeat("Do it. ", 300)))
	}
}

// measure measures each operation.
func (s *subject) measure() {
	id := ""
	if len(s.stored) > 0 {
		id = s.stored[0]
	}
	for range repeats {
		if len(s.stored) == 0 {
			id = sessionID(s.b, s.timed("new", "session/new", s.open("")))
		}
		s.timed("load", "session/load", s.open(id))
		s.timed("resume", "session/resume", s.open(id))
		s.prompt("prompt", id, "/roots")
		if s.searches {
			s.prompt("find", id, "/find nothing*")
			s.prompt("search", id, "/search nothing")
		}
		s.timed("list", "session/list", map[string]any{"cwd": s.roots[0]})
		fork := sessionID(s.b, s.timed("fork", "session/fork", s.open(id)))
		s.timed("close", "session/close", map[string]any{"sessionId": fork})
		if len(s.stored) == 0 {
			s.timed("delete", "session/delete", map[string]any{"sessionId": id})
		}
	}
	for _, id := range s.stored[min(1, len(s.stored)):] {
		s.timed("delete", "session/delete", map[string]any{"sessionId": id})
	}
}

// open returns the params that make or open a session.
func (s *subject) open(id string) map[string]any {
	params := map[string]any{"cwd": s.roots[0], "additionalDirectories": s.roots[1:],
		"mcpServers": []any{}}
	if id != "" {
		params["sessionId"] = id
	}
	return params
}

func (s *subject) prompt(name, id, text string) {
	s.timed(name, "session/prompt", map[string]any{"sessionId": id,
		"prompt": []any{map[string]string{"type": "text", "text": text}}})
}

// timed measures a request and returns the response.
func (s *subject) timed(name, method string, params map[string]any) (response []byte) {
	s.b.Helper()
	s.requests++
	const first = 1_000_000 // of the ids, which occur nowhere else in a line
	id := first + s.requests
	before := cpu(s.agent.cmd.Process.Pid)
	wall := timed(func() {
		s.agent.send(rawrpc.Request(id, method, params))
		_, response = s.agent.until(fmt.Sprintf(`"id":%d`, id))
	})
	if bytes.Contains(response, []byte(`"error":`)) {
		s.b.Fatalf("%s: %s", method, response)
	}
	s.add(name, wall, cpu(s.agent.cmd.Process.Pid)-before)
	return response
}

// cpu returns the time that a process has spent on a processor.
func cpu(pid int) (sum time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, name := range threads {
		text, _ := os.ReadFile(name) // it may have ended
		var ns time.Duration
		_, _ = fmt.Sscan(string(text), &ns)
		sum += ns
	}
	return sum
}

// measurement is how long an operation took on a size of what grows: medians in milliseconds.
type measurement struct {
	growth, operation string
	size              int
	cpu, wall         float64
}

// samples collects what operations take, by their names.
type samples struct {
	operations []string // in the order in which they came
	cpu, wall  map[string][]time.Duration
}

func newSamples() *samples {
	return &samples{cpu: map[string][]time.Duration{}, wall: map[string][]time.Duration{}}
}

func (s *samples) add(operation string, wall, cpu time.Duration) {
	if len(s.cpu[operation]) == 0 {
		s.operations = append(s.operations, operation)
	}
	s.cpu[operation] = append(s.cpu[operation], cpu)
	s.wall[operation] = append(s.wall[operation], wall)
}

// medians returns a measurement for each operation.
func (s *samples) medians(growth string, size int) (all []measurement) {
	for _, name := range s.operations {
		all = append(all, measurement{growth, name, size,
			ms(quantile(s.cpu[name], 0.5)), ms(quantile(s.wall[name], 0.5))})
	}
	return all
}

// writeRecord writes measurements to a file.
func writeRecord(path string, all []measurement) error {
	rows := [][]string{{"growth", "operation", "size", "cpu ms", "wall ms"}}
	for _, m := range all {
		rows = append(rows, []string{m.growth, m.operation, strconv.Itoa(m.size),
			fmt.Sprintf("%.2f", m.cpu), fmt.Sprintf("%.2f", m.wall)})
	}
	var text bytes.Buffer
	if err := csv.NewWriter(&text).WriteAll(rows); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

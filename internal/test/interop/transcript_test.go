package interop

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
)

var update = flag.Bool("update", false, "rewrite the agent's lines in testdata/*.txtar")

// conversation is the file of a transcript that contains the messages: "> " starts a line of the
// client, "< " one of the agent. Consecutive lines of the client are sent in one write; then the
// agent's are read. Any other line of the agent fails the test. "#" starts a comment, which belongs
// to the following line of the client.
//
// $WORK is the directory with the other files, $S1, $S2, … are the session ids in order of
// creation, $TIME is a time, $RANDOM the random end of a name, $VERSION the version of acp-agent.
//
// To write a new one, put an empty "< " for each expected line, run with -update, and read the
// result.
const conversation = "conversation"

// arguments is the file of a transcript that holds further arguments; BEHIND puts the scripted
// agent behind the program.
const arguments = "arguments"

func TestTranscripts(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the paths in transcripts are of other platforms")
	}
	paths, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			require.NoError(t, err)
			replay(t, archive)
			if *update && !t.Failed() {
				require.NoError(t, os.WriteFile(path, txtar.Format(archive), 0o644))
			}
		})
	}
}

// replay holds a conversation and compares it, or rewrites it in archive.
func replay(t *testing.T, archive *txtar.Archive) {
	t.Helper()
	work := folder(t)
	var args []string
	var script *txtar.File
	for i, f := range archive.Files {
		switch f.Name {
		case conversation:
			script = &archive.Files[i]
		case arguments:
			args = strings.Fields(strings.ReplaceAll(string(f.Data), "BEHIND", strings.Join(behind(), " ")))
		default:
			path := filepath.Join(work, f.Name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, f.Data, 0o644))
		}
	}
	require.NotNil(t, script, "there is no file %q", conversation)
	p := &player{a: start(t, args...), names: &placeholders{work: work}}
	for _, b := range blocks(string(script.Data)) {
		p.play(t, b)
	}
	p.a.leave()
	require.Empty(t, p.rest(), "the agent said more than it should have")
	script.Data = []byte(p.text.String())
	valid(t, p.a.Lines())
}

// block is what is sent in one write, and the answers to it.
type block struct {
	text string // the client's lines with their comments, as written
	sent []string
	want []string
}

func blocks(text string) []block {
	var all []block
	answered := true
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if want, ok := strings.CutPrefix(line, "< "); ok && len(all) > 0 {
			all[len(all)-1].want = append(all[len(all)-1].want, want)
			answered = true
			continue
		}
		if answered {
			all, answered = append(all, block{}), false
		}
		last := &all[len(all)-1]
		last.text += line + "\n"
		if sent, ok := strings.CutPrefix(line, "> "); ok {
			last.sent = append(last.sent, sent)
		}
	}
	return all
}

// player holds the conversation.
type player struct {
	a     *agent
	names *placeholders
	seen  int             // how many of the agent's lines were compared
	text  strings.Builder // the conversation as it was held
}

func (p *player) play(t *testing.T, b block) {
	t.Helper()
	p.text.WriteString(b.text)
	for i, line := range b.sent {
		b.sent[i] = p.names.expand(line)
	}
	if len(b.sent) > 0 {
		p.a.send(b.sent...)
	}
	var got []string
	if *update {
		got = p.listen(b)
	} else {
		for _, want := range b.want {
			m, at := p.a.await(p.seen, func(rawrpc.Message) bool { return true })
			p.seen = at + 1
			got = append(got, p.names.fold(m.Raw))
			require.Equal(t, want, got[len(got)-1], "behind %s%s", b.text, strings.Join(got, "\n"))
		}
	}
	for _, line := range got {
		p.text.WriteString("< " + line + "\n")
	}
}

// silence is how long an agent says nothing before a transcript that is being rewritten goes on.
const silence = 200 * time.Millisecond

// listen returns what the agent says to b: what answers its requests or asks the client first, no
// fewer lines than it had, and what comes before it falls silent.
func (p *player) listen(b block) []string {
	for _, line := range b.sent {
		var sent rawrpc.Message
		if json.Unmarshal([]byte(line), &sent) == nil && sent.Method != "" && len(sent.ID) > 0 && len(b.want) > 0 {
			p.a.await(p.seen, func(m rawrpc.Message) bool {
				if m.Method != "" {
					return len(m.ID) > 0 // the agent asks first
				}
				return string(m.ID) == string(sent.ID) || string(m.ID) == "null"
			})
		}
	}
	if last := p.seen + len(b.want) - 1; len(b.want) > 0 {
		p.a.await(last, func(rawrpc.Message) bool { return true })
	}
	for count := -1; count != p.a.Count(); time.Sleep(silence) {
		count = p.a.Count()
	}
	return p.rest()
}

// rest is what the agent has said beyond what was compared.
func (p *player) rest() []string {
	var all []string
	for _, m := range p.a.Messages()[p.seen:] {
		all = append(all, p.names.fold(m.Raw))
		p.seen++
	}
	return all
}

// placeholders are the names that transcripts use for values that differ between runs.
type placeholders struct {
	work     string
	sessions []string
}

var (
	newSession = regexp.MustCompile(`"result":\{.*"sessionId":("[^"]*")`)
	timestamp  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	random     = regexp.MustCompile(`"([a-z]+)-[A-Z2-7]{16,26}"`)
	release    = regexp.MustCompile(`("name":"acp-agent","version":)"[^"]*"`)
)

// expand replaces the placeholders in a line of the client by their values.
func (p *placeholders) expand(line string) string {
	for i, id := range slices.Backward(p.sessions) {
		line = strings.ReplaceAll(line, fmt.Sprintf("$S%d", i+1), id)
	}
	return strings.ReplaceAll(line, "$WORK", p.work)
}

// fold replaces values in a line of the agent by their placeholders.
func (p *placeholders) fold(line string) string {
	if m := newSession.FindStringSubmatch(line); m != nil {
		var id string
		if json.Unmarshal([]byte(m[1]), &id) == nil && id != "" {
			p.sessions = append(p.sessions, id)
		}
	}
	for i, id := range p.sessions {
		line = strings.ReplaceAll(line, id, fmt.Sprintf("$S%d", i+1))
	}
	line = strings.ReplaceAll(line, p.work, "$WORK")
	line = timestamp.ReplaceAllString(line, "$$TIME")
	line = random.ReplaceAllString(line, `"$1-$$RANDOM"`)
	return release.ReplaceAllString(line, `$1"$$VERSION"`)
}

// Package scripted is an ACP agent that follows the script in its prompt, for tests and benchmarks
// of the program in front of it. The first word of a prompt selects the script:
//
//	wait          sends "waiting PID" and waits for session/cancel; stop reason "cancelled"
//	stubborn      sends "waiting PID", ignores session/cancel; stop reason "end_turn" after half a second
//	stream N      sends N message chunks as fast as possible, until session/cancel
//	say TEXT      sends TEXT
//	roots         sends the session's cwd and additionalDirectories, one per line
//	play LINES    sends each line, METHOD PARAMS, as it is, with the session's id in the place of $session. Only
//	              session/update is a notification; of others it says what the client answers
//	ask METHOD P  sends the client a request with the params P and the session's id, and then the error of the response
//
// It does not use the code of acp-agent, and exits when its input ends.
package scripted

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// stubbornness is how long the script "stubborn" runs.
const stubbornness = 500 * time.Millisecond

// message is a message from the client.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		SessionID             string
		Cwd                   string
		AdditionalDirectories []string
		Prompt                []struct{ Text string }
	}
	Result json.RawMessage
	Error  *struct{ Message string }
}

// agent is the state of the connection. Only write may be called from other goroutines than the
// reading one.
type agent struct {
	roots   map[string][]string      // by session
	cancels map[string]chan struct{} // of the latest turn of each session
	turns   sync.WaitGroup

	mu    sync.Mutex
	out   io.Writer
	asked map[string]chan message // the requests without a response, by id
}

// Play serves a client on standard input and output, and returns an exit status for the process.
func Play() int {
	if err := Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Serve serves a client until in ends, then cancels running turns.
func Serve(in io.Reader, out io.Writer) error {
	a := &agent{roots: map[string][]string{}, cancels: map[string]chan struct{}{}, out: out, asked: map[string]chan message{}}
	lines := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			for id := range a.cancels {
				a.cancel(id)
			}
			a.mu.Lock()
			for _, answer := range a.asked {
				close(answer)
			}
			a.mu.Unlock()
			a.turns.Wait()
			if err == io.EOF {
				return nil
			}
			return err
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		a.accept(m)
	}
}

func (a *agent) accept(m message) {
	switch m.Method {
	case "initialize":
		a.answer(m.ID, `{"protocolVersion":1,"agentInfo":{"name":"scripted","version":"1"},"authMethods":[],`+
			`"agentCapabilities":{"sessionCapabilities":{"additionalDirectories":{},"close":{}}}}`)
	case "session/new":
		id := "scripted-" + strconv.Itoa(len(a.roots))
		a.roots[id] = append([]string{m.Params.Cwd}, m.Params.AdditionalDirectories...)
		a.answer(m.ID, `{"sessionId":"`+id+`"}`)
	case "session/prompt":
		a.prompt(m)
	case "session/cancel":
		a.cancel(m.Params.SessionID)
	case "session/close":
		a.cancel(m.Params.SessionID)
		a.answer(m.ID, `{}`)
	case "": // a response
		a.mu.Lock()
		defer a.mu.Unlock()
		if answer := a.asked[string(m.ID)]; answer != nil {
			answer <- m
			delete(a.asked, string(m.ID))
		}
	default:
		if m.ID != nil {
			a.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"not supported by the scripted agent"}}`, m.ID)
		}
	}
}

func (a *agent) cancel(session string) {
	if c := a.cancels[session]; c != nil {
		close(c)
		delete(a.cancels, session)
	}
}

// prompt plays a script in a new goroutine.
func (a *agent) prompt(m message) {
	var text, told string
	for _, block := range m.Params.Prompt {
		if strings.Contains(block.Text, "acp-agent-context") {
			told += block.Text
		} else {
			text += block.Text
		}
	}
	if !strings.HasPrefix(text, "ask ") { // whose params end the text
		text += told
	}
	session, cancelled := m.Params.SessionID, make(chan struct{})
	a.cancels[session] = cancelled
	roots := a.roots[session]
	a.turns.Go(func() {
		reason := a.play(session, text, roots, cancelled)
		a.answer(m.ID, `{"stopReason":"`+reason+`"}`)
	})
}

// play plays a script and returns the stop reason.
func (a *agent) play(session, text string, roots []string, cancelled <-chan struct{}) string {
	script, rest, _ := strings.Cut(text, " ")
	switch script {
	case "wait":
		a.say(session, fmt.Sprint("waiting ", os.Getpid()))
		<-cancelled
		return "cancelled"
	case "stubborn":
		a.say(session, fmt.Sprint("waiting ", os.Getpid()))
		time.Sleep(stubbornness)
	case "stream":
		n, _ := strconv.Atoi(rest)
		for i := range n {
			select {
			case <-cancelled:
				return "cancelled"
			default:
				a.say(session, fmt.Sprint("update ", i, "\n"))
			}
		}
	case "roots":
		a.say(session, strings.Join(roots, "\n"))
	case "play":
		a.playLines(session, rest)
	case "ask":
		method, params, _ := strings.Cut(rest, " ")
		if answer := a.ask(session, method, params); answer.Error != nil {
			a.say(session, answer.Error.Message)
		}
	default:
		a.say(session, rest)
	}
	return "end_turn"
}

// playLines sends messages.
func (a *agent) playLines(session, lines string) {
	for line := range strings.Lines(strings.ReplaceAll(lines, "$session", session)) {
		method, params, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if method == "session/update" {
			a.write(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
			continue
		}
		answer := a.await(session, method, params)
		if answer.Error != nil {
			a.say(session, "refused")
		} else {
			a.say(session, "answered "+string(answer.Result))
		}
	}
}

// ask sends the client a request and returns the response, an empty message if the input ends
// before.
func (a *agent) ask(session, method, params string) message {
	return a.await(session, method, fmt.Sprintf(`{"sessionId":%q,%s`, session, strings.TrimPrefix(params, "{")))
}

// await sends a request with all its params and returns the response.
func (a *agent) await(session, method, params string) message {
	answer := make(chan message, 1)
	a.mu.Lock()
	id := strconv.Quote("asked-" + session) // a session runs one turn at a time
	a.asked[id] = answer
	a.mu.Unlock()
	a.write(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
	return <-answer
}

func (a *agent) say(session, text string) {
	quoted, err := json.Marshal(text)
	if err != nil {
		return
	}
	a.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":`+
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s}}}}`, session, quoted)
}

func (a *agent) answer(id json.RawMessage, result string) {
	a.write(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// write writes a line. It ignores errors, since the reader detects that the client has
// disconnected.
func (a *agent) write(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = fmt.Fprintf(a.out, format+"\n", args...)
}

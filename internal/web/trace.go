package web

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

const (
	// traceMessages and traceBytes limit what is read of a trace for one answer.
	traceMessages = 1000
	traceBytes    = 8 << 20
	// longestLine is the longest message that is looked into, and shownMessage how much of one is
	// shown, in bytes.
	longestLine  = 4 << 20
	shownMessage = 1 << 20
)

// trace is a file with messages.
type trace struct {
	Name     string    `json:"name"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`

	path string
}

// traces returns the files with traces, the newest first.
func (o Options) traces(context.Context, url.Values) (any, error) { return o.traceFiles("") }

// traceFiles returns the files with traces, or only the one with a name.
func (o Options) traceFiles(name string) ([]trace, error) {
	found := []trace{}
	sought := func(path string) bool { return name == "" || text.Printable(path) == name }
	for _, path := range o.Traces {
		info, err := os.Stat(path)
		if err != nil {
			continue // it was there at the start
		}
		if !info.IsDir() {
			if sought(path) {
				found = append(found, newTrace(path, info))
			}
			continue
		}
		files, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			path := filepath.Join(path, file.Name())
			if !sought(path) {
				continue
			}
			info, err := file.Info()
			if err == nil && info.Mode().IsRegular() && isTrace(path) {
				found = append(found, newTrace(path, info))
			}
		}
	}
	slices.SortStableFunc(found, func(a, b trace) int { return b.Modified.Compare(a.Modified) })
	return found, nil
}

func newTrace(path string, info os.FileInfo) trace {
	return trace{Name: text.Printable(path), Size: info.Size(), Modified: info.ModTime(),
		path: path}
}

// isTrace reports whether a file begins like a trace.
func isTrace(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	begin := make([]byte, 200)
	n, _ := io.ReadFull(file, begin)
	_, ok := parseLine(begin[:n])
	return ok
}

// openTrace opens the trace that a request names.
func (o Options) openTrace(q url.Values) (*os.File, error) {
	if q.Get("name") == "" {
		return nil, fmt.Errorf("%w: name", errParameter)
	}
	named, err := o.traceFiles(q.Get("name"))
	if err != nil {
		return nil, err
	}
	if len(named) == 0 {
		return nil, fmt.Errorf("%w: there is no such trace", os.ErrNotExist)
	}
	return os.Open(named[0].path)
}

// tracedMessage has what the timeline shows of a message.
type tracedMessage struct {
	At   int64   `json:"at"`   // where its JSON is in the file
	Size int     `json:"size"` // of its JSON
	Time float64 `json:"time"` // in milliseconds since 1970
	Sent bool    `json:"sent"` // by acp-agent
	// Process is the process of acp-agent, such as "acp-agent[4710]".
	Process string `json:"process"`
	Peer    string `json:"peer"`
	Kind    string `json:"kind"` // request, response, notification or invalid
	ID      string `json:"id,omitempty"`
	Method  string `json:"method,omitempty"`
	Label   string `json:"label,omitempty"`
	Error   string `json:"error,omitempty"`
	// Text is the text of a piece of a message.
	Text string `json:"text,omitempty"`
	// Sum is equal for messages with the same content, whatever their session and id.
	Sum string `json:"sum"`
}

// messages returns the messages of a trace from a place in its file on, and where the next begins.
func (o Options) messages(_ context.Context, q url.Values) (any, error) {
	from, err := strconv.ParseInt(q.Get("from"), 10, 64)
	if err != nil || from < 0 {
		return nil, fmt.Errorf("%w: from", errParameter)
	}
	file, err := o.openTrace(q)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return nil, err
	}
	list, next, lines := []tracedMessage{}, from, bufio.NewReaderSize(file, 256<<10)
	for len(list) < traceMessages && next-from < traceBytes {
		line, size, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			break // a line without its end is still being written
		}
		if err != nil {
			return nil, err
		}
		if m, ok := parseLine(line); ok {
			m.At += next
			m.Size += size - len(line)
			list = append(list, m)
		}
		next += int64(size)
	}
	return map[string]any{"messages": list, "next": next, "size": info.Size()}, nil
}

// readLine returns the beginning of the next line, and the size of the whole line with its end.
func readLine(r *bufio.Reader) (line []byte, size int, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		size += len(piece)
		if len(line) < longestLine {
			line = append(line, piece...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, size, err
		}
	}
}

// parseLine reads a line of a trace, which may be incomplete: the time, the process of acp-agent,
// an arrow, the peer and the message. At is where the message begins in the line.
func parseLine(line []byte) (m tracedMessage, ok bool) {
	head, rest, _ := bytes.Cut(line, []byte(" "))
	at, err := time.Parse(time.RFC3339Nano, string(head))
	process, rest, ok := bytes.Cut(rest, []byte(" "))
	if !ok || err != nil || len(rest) < 4 {
		return m, false
	}
	arrow, rest := string(rest[:3]), rest[3:]
	begin := bytes.IndexAny(rest, "{(")
	if bracket := bytes.Index(rest, []byte(" [")); bracket >= 0 && bracket < begin {
		begin = bracket + 1 // a batch
	}
	if arrow != "-> " && arrow != "<- " || begin < 0 {
		return m, false
	}
	body, whole := bytes.CutSuffix(rest[begin:], []byte("\n"))
	m = tracedMessage{
		At: int64(len(line) - len(rest) + begin), Size: len(body),
		Time: float64(at.UnixMicro()) / 1000, Sent: arrow == "-> ",
		Process: text.Line(text.Printable(string(process)), 100),
		Peer:    text.Printable(strings.TrimSpace(string(rest[:begin]))), Kind: "invalid",
	}
	m.read(body, whole)
	return m, true
}

// envelope holds the members of a message that the timeline needs.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// read reads what is shown of a message's JSON. Of a message that is too long it is the beginning,
// in which the id and the method usually are. Without either it is not a message.
func (m *tracedMessage) read(body []byte, whole bool) {
	var e envelope
	if !whole {
		e.ID = strictjson.Find(body, "id")
		_ = strictjson.Decode(strictjson.Find(body, "method"), &e.Method) // which leaves it empty
	} else if strictjson.Decode(body, &e) != nil {
		return
	}
	m.ID, m.Method = text.Line(text.Plain(string(e.ID)), 100), text.Line(text.Plain(e.Method), 100)
	content := e.Params
	switch {
	case e.Method == "" && len(e.ID) == 0:
		return
	case e.Method == "":
		m.Kind, content = "response", e.Result
	case len(e.ID) == 0:
		m.Kind = "notification"
	default:
		m.Kind = "request"
	}
	if !whole {
		m.Label = "(long)"
		return
	}
	if e.Error != nil {
		m.Error = text.Line(text.Plain(cmp.Or(e.Error.Message, "error")), 300)
	}
	m.Label, m.Text, m.Sum = label(content), piece(content), sum(content)
}

// label returns in a line what a message's params or result say.
func label(content json.RawMessage) string {
	all, _ := strictjson.ParseObject(content)
	in := func(name string) strictjson.Object {
		o, _ := all.Field(name).Object()
		return o
	}
	said := func(o strictjson.Object, name string) string {
		s, _ := o.Field(name).Text() // most messages have few of these
		return s
	}
	heading := func(o strictjson.Object) string {
		return sessionstore.CallHeading(said(o, "title"), said(o, "name"))
	}
	update, call, outcome := in("update"), in("toolCall"), in("outcome")
	return text.Line(text.Plain(strings.Join(strings.Fields(strings.Join([]string{
		said(update, "sessionUpdate"), heading(update), said(update, "status"), heading(call),
		said(outcome, "outcome"), said(outcome, "optionId"),
		said(all, "path"), said(all, "command"), said(all, "stopReason"),
	}, " ")), " ")), 200)
}

// piece returns what an update adds to a message.
func piece(content json.RawMessage) string {
	var said string
	_ = strictjson.Decode(strictjson.Find(content, "update", "content", "text"), &said)
	return text.Plain(text.Prefix(said, 300))
}

// sum returns the sum of a message's params or result, without its session.
func sum(content json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(content, &members) == nil {
		delete(members, "sessionId")
		content, _ = json.Marshal(members)
	}
	h := fnv.New64a()
	_, _ = h.Write(content)
	return strconv.FormatUint(h.Sum64(), 36)
}

// message returns the text of a message.
func (o Options) message(_ context.Context, q url.Values) (any, error) {
	at, err := strconv.ParseInt(q.Get("at"), 10, 64)
	size, sizeErr := strconv.Atoi(q.Get("size"))
	if err != nil || sizeErr != nil || at < 0 || size < 0 {
		return nil, fmt.Errorf("%w: at or size", errParameter)
	}
	file, err := o.openTrace(q)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	body := make([]byte, min(size, shownMessage))
	n, err := file.ReadAt(body, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return map[string]any{"text": string(text.EscapeJSON(body[:n])), "cut": size > n}, nil
}

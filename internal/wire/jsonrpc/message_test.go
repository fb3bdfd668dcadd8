package jsonrpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

var update = flag.Bool("update", false, "rewrite the expected lines of the transcripts")

// TestTranscripts plays testdata/*.txtar: it sends the lines of each "client" section one by one
// and compares the output with the "server" section that follows. Files are named after clauses. In
// a client line, «…» stands for the bytes of the Go string literal "…".
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(strings.Replace(name, "-", "/", 1), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			want := txtar.Format(archive)
			played := play(t, archive)
			if *update {
				require.NoError(t, os.WriteFile(file, txtar.Format(played), 0o644))
				return
			}
			require.Equal(t, string(want), string(txtar.Format(played)))
		})
	}
}

// play returns archive with the actual server sections.
func play(t *testing.T, archive *txtar.Archive) *txtar.Archive {
	played := &txtar.Archive{Comment: archive.Comment}
	synctest.Test(t, func(t *testing.T) {
		in, client := io.Pipe()
		var out output
		h := &responder{}
		conn := jsonrpc.NewConn(jsonrpc.NewLines(in, &out, 300), h, jsonrpc.Options{})
		h.conn = conn
		served := make(chan error, 1)
		go func() { served <- conn.Serve(context.Background()) }()
		for _, section := range archive.Files {
			if section.Name != "client" {
				continue
			}
			for line := range bytes.Lines(section.Data) {
				_, err := client.Write(bytesOf(t, line))
				require.NoError(t, err)
				synctest.Wait()
			}
			played.Files = append(played.Files, section, txtar.File{Name: "server", Data: out.take()})
		}
		client.Close()
		require.NoError(t, <-served)
		played.Files = append(played.Files, txtar.File{Name: "server after the end", Data: out.take()})
	})
	return played
}

// bytesOf replaces «…» in a line.
func bytesOf(t *testing.T, line []byte) []byte {
	before, rest, found := bytes.Cut(line, []byte("«"))
	if !found {
		return line
	}
	literal, after, _ := bytes.Cut(rest, []byte("»"))
	return append(append(bytes.Clone(before), unquote(t, string(literal))...), bytesOf(t, after)...)
}

func unquote(t *testing.T, literal string) string {
	t.Helper()
	s, err := strconv.Unquote(`"` + literal + `"`)
	require.NoError(t, err)
	return s
}

// FuzzConn feeds arbitrary bytes to a connection. It must not panic or hang, must answer each line
// exactly as often as required, and must write only JSON-RPC messages. Because of goroutines
// coverage varies between runs, so use -fuzzminimizetime 20x.
func FuzzConn(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		for _, section := range txtar.Parse(data).Files {
			f.Add(section.Data)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		const maxLine = 1000
		var out output
		h := &responder{}
		conn := jsonrpc.NewConn(jsonrpc.NewLines(bytes.NewReader(in), &out, maxLine), h, jsonrpc.Options{Grace: time.Minute})
		h.conn = conn
		served := make(chan error, 1)
		go func() { served <- conn.Serve(context.Background()) }()
		select {
		case err := <-served:
			require.NoError(t, err)
		case <-time.After(patience):
			require.FailNow(t, "hangs")
		}

		var want []string
		for line := range bytes.Lines(in) {
			if id, answered := expectAnswer(bytes.TrimSuffix(line, []byte("\n")), maxLine); answered {
				want = append(want, id)
			}
		}
		var got []string
		written := out.take()
		for line := range bytes.Lines(written) {
			if id := requireMessage(t, line); id != "" {
				got = append(got, id)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		require.Equal(t, want, got)
	})
}

// expectAnswer reports whether a line must be answered, and with which id.
func expectAnswer(line []byte, maxLine int) (id string, answered bool) {
	const null = "null"
	if len(bytes.TrimSuffix(line, []byte("\r"))) > maxLine {
		return null, true
	}
	if line = bytes.Trim(line, " \t\r"); len(line) == 0 {
		return "", false
	}
	m, twice, ok := membersOf(line)
	if !ok || !utf8.Valid(line) {
		return null, true
	}
	id, method := string(m["id"]), m["method"]
	idOK := id != "" && strings.ContainsRune(`"-0123456789`, rune(id[0]))
	var version, name string
	versionOK := json.Unmarshal(m["jsonrpc"], &version) == nil && version == "2.0"
	_, result := m["result"]
	_, failure := m["error"]
	asks := method != nil || m["params"] != nil
	of := null // an invalid message
	if asks && !result && !failure && idOK && !twice["id"] {
		of = id
	}
	switch {
	case !versionOK, len(twice) > 0:
		return of, true
	case asks:
		if method == nil || method[0] != '"' || json.Unmarshal(method, &name) != nil ||
			loneSurrogate(method) || result || failure || (id != "" && !idOK) {
			return of, true
		}
		return id, idOK
	case id != "" && !idOK && id != null:
		return null, true
	default:
		failed := failure && string(m["error"]) != null
		return null, !failed && (!result || id == "")
	}
}

// membersOf returns the members of an object, and the names that are given twice. It returns false
// for other values.
func membersOf(line []byte) (m map[string]json.RawMessage, twice map[string]bool, ok bool) {
	d := json.NewDecoder(bytes.NewReader(line))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, nil, false
	}
	m, twice = map[string]json.RawMessage{}, map[string]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, nil, false
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil, nil, false
		}
		if _, given := m[name.(string)]; given {
			twice[name.(string)] = true
		}
		m[name.(string)] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, false
	}
	_, err := d.Token()
	return m, twice, err == io.EOF
}

// loneSurrogate reports whether a JSON string contains a lone surrogate, which decodes as U+FFFD.
func loneSurrogate(quoted []byte) bool {
	var text string
	_ = json.Unmarshal(quoted, &text)
	written := strings.Count(string(quoted), "�") + strings.Count(strings.ToLower(string(quoted)), `\ufffd`)
	return strings.Count(text, "�") > written
}

// requireMessage checks an output line, and returns the id of a response.
func requireMessage(t *testing.T, line []byte) string {
	t.Helper()
	var m map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(line, &m), "%q", line)
	require.True(t, utf8.Valid(line))
	require.Equal(t, `"2.0"`, string(m["jsonrpc"]))
	if _, ours := m["method"]; ours {
		return ""
	}
	_, result := m["result"]
	_, failure := m["error"]
	require.True(t, result != failure, "%q", line)
	require.NotEmpty(t, m["id"])
	return string(m["id"])
}

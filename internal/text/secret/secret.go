// Package secret keeps secrets that the program was given, such as the environment variables and
// URLs of MCP servers, out of logs, traces and errors.
package secret

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

const (
	// shortest is the shortest value that is replaced, in bytes. Shorter ones, such as "1" or
	// "true", are too common.
	shortest = 6
	// mark replaces a secret.
	mark = "[secret]"
)

// Scrubber replaces known secrets in text. The zero value knows none, and neither does a nil
// Scrubber. It is safe for concurrent use.
type Scrubber struct {
	mu       sync.Mutex
	values   map[string]bool
	hosts    map[string]bool   // in lower case, of URLs of which everything else is a secret
	replacer *strings.Replacer // of values, nil if some were added since it was made
}

// Add adds a secret. Its parts, such as the token in "Bearer TOKEN" or {"Authorization":"Bearer
// TOKEN"}, are secrets too, unless they are ordinary words.
func (s *Scrubber) Add(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addLocked(value)
	separates := func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(`"'\,;={}[]<>&`, r)
	}
	for part := range strings.FieldsFuncSeq(value, separates) {
		if !isWord(part) {
			s.addLocked(part)
		}
	}
}

// OfCommand returns a Scrubber with the secrets that a child process gets: in our environment, in
// its own variables (NAME=VALUE) and in URLs in its arguments.
func OfCommand(args, env []string) *Scrubber {
	s := &Scrubber{}
	s.AddEnvironment()
	values := make([]string, len(env))
	for i, variable := range env {
		_, values[i], _ = strings.Cut(variable, "=")
	}
	s.AddServer("", args, values)
	return s
}

// AddServer adds the secrets that an MCP server gets: the values of its variables or headers, and
// the secrets in its URL and in URLs in its arguments.
func (s *Scrubber) AddServer(address string, args, values []string) {
	for _, value := range values {
		s.Add(value)
	}
	s.addURL(address)
	for _, arg := range args {
		for _, url := range urls().FindAllString(arg, -1) {
			s.addURL(url)
		}
	}
}

// AddEnvironment adds the values of our own environment variables whose names are those of
// credentials.
func (s *Scrubber) AddEnvironment() {
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); IsCredential(name) {
			s.Add(value)
		}
	}
}

// addURL adds the secrets in a URL: the user name and password, the query, the fragment, and what
// does not look like ordinary words in its path.
func (s *Scrubber) addURL(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		s.addLocked(address)
		return
	}
	if s.hosts == nil {
		s.hosts = make(map[string]bool)
	}
	s.hosts[strings.ToLower(u.Host)] = true
	password, _ := u.User.Password()
	for _, part := range []string{
		u.User.Username(), password, u.RawQuery, u.EscapedFragment(), u.Fragment,
	} {
		s.addLocked(part)
	}
	for segment := range strings.SplitSeq(u.EscapedPath(), "/") {
		if !isPlainSegment(segment) {
			plain, _ := url.PathUnescape(segment)
			for _, part := range []string{segment, plain, u.EscapedPath(), u.Path} {
				s.addLocked(part)
			}
		}
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		value := pair
		if _, after, ok := strings.Cut(pair, "="); ok {
			value = after
		}
		plain, _ := url.QueryUnescape(value)
		s.addLocked(value)
		s.addLocked(plain)
	}
}

// addLocked adds a value, also as it is written in JSON and in URLs, unless it is a date, such as
// the revision of a protocol.
func (s *Scrubber) addLocked(value string) {
	_, notDate := time.Parse(time.DateOnly, value)
	if len(value) < shortest || s.values[value] || notDate == nil {
		return
	}
	if s.values == nil {
		s.values = make(map[string]bool)
	}
	s.replacer = nil
	quoted := strictjson.Text(value)
	for _, written := range []string{
		value, string(quoted[1 : len(quoted)-1]), url.QueryEscape(value), url.PathEscape(value),
	} {
		s.values[written] = true
	}
}

// isWord reports whether s looks like an ordinary word: not long, all letters in lower case except
// perhaps the first, and, unless it is short, no five consonants in a row.
func isWord(s string) bool {
	const short, longest = 8, 15
	consonants := 0
	for i := range len(s) {
		c := s[i]
		if ('a' > c || c > 'z') && (i > 0 || 'A' > c || c > 'Z') {
			return false
		}
		consonants++
		if strings.IndexByte("aeiouwy", c) >= 0 {
			consonants = 0
		}
		if consonants == 5 && len(s) > short {
			return false
		}
	}
	return len(s) <= longest
}

// numbers matches a number, a version or a date in the path of a URL, such as "12", "v1" and
// "2025-11-25".
var numbers = text.Pattern(`^(v?[0-9]{1,4}([.][0-9]{1,3}){0,2}|[0-9]{4}-[0-9]{2}-[0-9]{2})$`)

// isPlainSegment reports whether a part of the path of a URL is not a secret: it is a number, or up
// to four words of limited total length. A token of a few small letters cannot be distinguished
// from a word.
func isPlainSegment(segment string) bool {
	const longest, most, longestOfAll = 12, 4, 24
	words := strings.FieldsFunc(segment, func(r rune) bool { return strings.ContainsRune("-_.", r) })
	return numbers().MatchString(segment) || len(words) <= most && len(segment) <= longestOfAll &&
		!slices.ContainsFunc(words, func(w string) bool { return len(w) > longest || !isWord(w) })
}

// Text returns text with secrets replaced.
func (s *Scrubber) Text(text string) string {
	if s == nil {
		return text
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.textLocked(text)
}

// textLocked is [Scrubber.Text].
func (s *Scrubber) textLocked(text string) string {
	if len(s.hosts) > 0 {
		text = urls().ReplaceAllStringFunc(text, func(address string) string {
			if u, err := url.Parse(address); err == nil && s.hosts[strings.ToLower(u.Host)] {
				return HideURL(address)
			}
			return address
		})
	}
	if s.replacer == nil {
		var pairs []string
		// One may contain another, and the first that matches is replaced.
		longest := func(a, b string) int { return len(b) - len(a) }
		for _, value := range slices.SortedFunc(maps.Keys(s.values), longest) {
			pairs = append(pairs, value, mark)
		}
		s.replacer = strings.NewReplacer(pairs...)
	}
	return s.replacer.Replace(text)
}

// Start is Text for the beginning of a longer text. It also replaces a secret that is cut off at
// the end.
func (s *Scrubber) Start(text string) string {
	if s == nil {
		return text
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text = s.textLocked(text)
	longest := 0
	for value := range s.values {
		for n := min(len(value)-1, len(text)); n >= shortest && n > longest; n-- {
			if strings.HasSuffix(text, value[:n]) {
				longest = n
			}
		}
	}
	if longest == 0 {
		return text
	}
	return text[:len(text)-longest] + mark
}

// JSON returns raw with secrets replaced in its strings, names and numbers. It returns raw itself
// if it contains none.
func (s *Scrubber) JSON(raw json.RawMessage) json.RawMessage {
	if s == nil || len(raw) == 0 {
		return raw
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil
	}
	value, changed := s.json(value)
	if !changed {
		return raw
	}
	clean, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return clean
}

// json replaces secrets in a decoded value and reports whether there were any.
func (s *Scrubber) json(value any) (clean any, changed bool) {
	switch v := value.(type) {
	case string:
		clean := s.Text(v)
		return clean, clean != v
	case json.Number:
		if clean := s.Text(v.String()); clean != v.String() {
			return clean, true
		}
	case []any:
		for i := range v {
			item, found := s.json(v[i])
			v[i], changed = item, changed || found
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for name, member := range v {
			plain := s.Text(name)
			member, found := s.json(member)
			clean[plain] = member
			changed = changed || found || plain != name
		}
		return clean, changed
	}
	return value, changed
}

// credentials matches the names of credentials. It does not match exported shell functions, such as
// BASH_FUNC_x%%, or PWD, LESSKEY and GIT_CONFIG_KEY_0.
var credentials = text.Pattern(`(?i)^[a-z0-9_-]*(token|secret|password|passwd|passphrase|` +
	`(api|access|secret|private)key|cookie|authorization)$` +
	`|(?i)^([a-z0-9_-]*[_-])?(key|auth|pat|pass)$|(?i)^[a-z0-9_-]+[_-]pwd$`)

// IsCredential reports whether an environment variable or header with this name usually holds a
// credential.
func IsCredential(name string) bool { return credentials().MatchString(name) }

// urls matches URLs in text, without the punctuation of a sentence behind them.
var urls = text.Pattern("[A-Za-z][A-Za-z0-9+.-]*://[^\\s\"'<>`]*[^\\s\"'<>`.,:;!?)]")

// HideURLs returns text with each URL in it hidden by [HideURL].
func HideURLs(text string) string { return urls().ReplaceAllStringFunc(text, HideURL) }

// HideURL returns a URL without what may be a secret in it: the user name and password, the query,
// the fragment, and what does not look like ordinary words in its path.
func HideURL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return mark
	}
	shown := u.Scheme + "://"
	if u.User != nil {
		shown += mark + "@"
	}
	segments := strings.Split(u.EscapedPath(), "/")
	for i, segment := range segments {
		if !isPlainSegment(segment) {
			segments[i] = mark
		}
	}
	shown += u.Host + strings.Join(segments, "/")
	if u.RawQuery != "" {
		shown += "?" + mark
	}
	if u.Fragment != "" {
		shown += "#" + mark
	}
	return shown
}

// IsLoopback reports whether the host of a URL or a listener stands for this machine only, so that
// secrets can be sent to it without encryption.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}

// assignment matches a name, what follows a name before its value, and the value.
var assignment = text.Pattern(`([A-Za-z0-9_-]+)("?'?[ \t]*[=:][ \t]*["']?)` +
	`((?:(?:Bearer|Basic|Token)[ \t]+)?[^\s"',;&]+)`)

// userInfo matches the user name and password of a URL.
var userInfo = text.Pattern(`://[^/\s@:"']*:[^/\s@"']+@`)

// shaped matches keys that are known by their form.
var shaped = text.Pattern(`\b(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|` +
	`github_pat_[A-Za-z0-9_]{20,}|AKIA[A-Z0-9]{16}|xox[abprs]-[A-Za-z0-9-]{10,}|` +
	`AIza[A-Za-z0-9_-]{30,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+)`)

// Mask returns text without what looks like a secret: the value behind a name such as API_TOKEN,
// passwords in URLs, and keys of a known form. It finds only what looks like one.
func Mask(text string) string {
	text = userInfo().ReplaceAllString(text, "://"+mark+"@")
	text = shaped().ReplaceAllString(text, mark)
	return assignment().ReplaceAllStringFunc(text, func(found string) string {
		parts := assignment().FindStringSubmatch(found)
		if !IsCredential(parts[1]) {
			return found
		}
		return parts[1] + parts[2] + mark
	})
}

package permission

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

// fetchRule is a rule for Fetch, about the host with this name in lower case, or with "*." before
// it about all below it.
type fetchRule struct{ host string }

func parseFetch(name string) (matcher, error) {
	host := strings.ToLower(name)
	if !isHost(strings.TrimPrefix(host, "*.")) {
		return nil, errors.New(
			"a fetch rule has the name of a host, without a scheme, a port or a path")
	}
	return fetchRule{host}, nil
}

// isHost reports whether a name is one of a host in lower case that is read in one way only.
func isHost(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-_"
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	return len(name) <= 253 && !slices.Contains(labels, "") &&
		strings.Trim(name, letters+".") == "" && strings.Trim(last, "0123456789") != "" &&
		!strings.HasPrefix(last, "0x")
}

func (r fetchRule) String() string { return r.host }

func (r fetchRule) allows(a Action) bool {
	return a.Host == r.host || strings.HasPrefix(r.host, "*.") && isHost(a.Host) &&
		strings.HasSuffix(a.Host, r.host[1:])
}

func (r fetchRule) touches(a Action) bool {
	says := func(s saying) bool { return r.isIn(s.text) }
	return r.isIn(a.Host) || slices.ContainsFunc(a.said, says)
}

func (r fetchRule) mayTouch(a Action) bool {
	return a.Passed.More || slices.ContainsFunc(a.Passed.Words, r.isIn)
}

// isIn reports whether a text contains the name of the host.
func (r fetchRule) isIn(s string) bool {
	s = strings.ToLower(s)
	host, isAbove := strings.CutPrefix(r.host, "*.")
	for at := 0; ; {
		i := strings.Index(s[at:], host)
		if i < 0 {
			return false
		}
		begin, end := at+i, at+i+len(host)
		at = begin + 1
		after := strings.TrimPrefix(s[end:], ".")
		if after != "" && isInHost(after[0]) || begin > 0 && isInHost(s[begin-1]) {
			continue
		}
		if begin > 0 && s[begin-1] == '.' && !isAbove ||
			isAbove && (begin == 0 || s[begin-1] != '.') {
			continue
		}
		return true
	}
}

// isInHost reports whether a character continues a label of a host's name.
func isInHost(c byte) bool {
	return c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || c >= 0x80
}

// hostOf returns the host of an http or https URL that is read in one way only, with the default
// port and without a user.
func hostOf(address string) (string, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil, !text.IsVisible(address), strings.ContainsAny(address, "\\ \t\r\n"),
		u.Scheme != "https" && u.Scheme != "http", u.User != nil, u.Port() != "",
		strings.HasSuffix(u.Host, ":"):
		return "", fmt.Errorf("%s is not a plain address", text.Quote(text.Truncate(address, 100)))
	}
	host := strings.ToLower(u.Hostname())
	if !isHost(host) {
		return "", fmt.Errorf("%s is not the name of a host", text.Quote(text.Truncate(host, 100)))
	}
	return host, nil
}

func offerFetch(a Action) (Rule, bool) {
	return Rule{matcher: fetchRule{a.Host}, Root: a.Root}, a.Host != ""
}

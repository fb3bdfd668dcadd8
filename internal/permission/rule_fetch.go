package permission

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

// fetchRule is a rule for Fetch, about the host with this name in lower case, or with "*." before
// it about all below it.
type fetchRule struct {
	host  string
	named *regexp.Regexp // matches a text with the name
}

func parseFetch(name string) (matcher, error) {
	host := strings.ToLower(name)
	if !isHost(strings.TrimPrefix(host, "*.")) {
		return nil, errors.New(
			"a fetch rule has the name of a host, without a scheme, a port or a path")
	}
	const label = `a-z0-9_\-\x{80}-\x{10ffff}`
	before, name := `(?:^|[^.`+label+`])`, host
	if above, isAbove := strings.CutPrefix(host, "*"); isAbove {
		before, name = "", above
	}
	named, err := regexp.Compile(before + regexp.QuoteMeta(name) + `(?:\.?$|\.?[^.` + label +
		`]|\.\.)`)
	return fetchRule{host, named}, err
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

func (r fetchRule) touches(a *prepared) bool {
	says := func(s saying) bool { return r.isIn(s.text) }
	return r.isIn(a.Host) || slices.ContainsFunc(a.said, says)
}

func (r fetchRule) mayTouch(a *prepared) bool {
	return a.Hints.More || slices.ContainsFunc(a.Hints.Words, r.isIn)
}

// isIn reports whether a text contains the name of the host.
func (r fetchRule) isIn(s string) bool { return r.named.MatchString(strings.ToLower(s)) }

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

func offerFetch(a Action) (written string, in Scope) {
	return "fetch " + a.Host, Scope{Root: a.Where.Root}
}

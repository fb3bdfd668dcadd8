package mcpclient

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

// maxPage is the most bytes of the address of a page.
const maxPage = 8 << 10

// parsePage parses the address of a page that a server wants the user to open. It rejects an
// address that could mislead the user: it must be http or https, in the characters that RFC 3986
// allows, with a plain host and without a user name, which could be mistaken for the host.
func parsePage(address string) (*url.URL, error) {
	if len(address) > maxPage {
		return nil, errors.New("it is too long")
	}
	odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("<>\"`\\", r) }
	if strings.ContainsFunc(address, odd) {
		return nil, errors.New("it has characters that must be written as %XX, or in its host as " +
			"xn--")
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("it cannot be parsed")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("its scheme is another")
	case u.User != nil:
		return nil, errors.New("it has a user name")
	case !isPlainHost(u.Hostname()):
		return nil, errors.New("its host is not a plain name or IP address")
	}
	return u, nil
}

// isPlainHost reports whether a host is an IP address in its usual form, or a name of ASCII
// letters, digits, hyphens and underscores that no browser interprets as an address.
func isPlainHost(host string) bool {
	if net.ParseIP(host) != nil {
		return true
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, label := range labels {
		other := func(r rune) bool {
			letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
			return !letter && (r < '0' || r > '9') && r != '-' && r != '_'
		}
		if label == "" || strings.ContainsFunc(label, other) {
			return false
		}
	}
	last := strings.ToLower(labels[len(labels)-1])
	return strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}

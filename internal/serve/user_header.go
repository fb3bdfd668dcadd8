package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/serve/websocket"
	"github.com/acp-agent/acp-agent/workspace"
)

// UserHeader is a header in which a proxy that knows its users names the one who sends a request,
// such as X-Forwarded-User. Only the proxies are believed. The zero value believes nobody.
type UserHeader struct {
	header  string // in the form of the keys of http.Header
	proxies []netip.Prefix
	// within are the directories of users without an account, in which placeholder stands for the
	// user's name. If it is empty, such users may not connect.
	within []string
}

// placeholder stands for the name of a user.
const placeholder = "{user}"

// notForUsers are headers that have another meaning, or that a client may set behind any proxy.
var notForUsers = []string{"Authorization", "Connection", "Cookie", "Origin", "Upgrade"}

// ParseUserHeader returns the header with this name from the proxies with these addresses, such as
// 10.0.0.7 or 10.1.0.0/24. within are the directories of users without an account, "{user}" in them
// is the user's name.
func ParseUserHeader(header string, proxies, within []string) (UserHeader, error) {
	h := UserHeader{header: http.CanonicalHeaderKey(header), within: within}
	other := strings.Trim(strings.ToLower(header), "abcdefghijklmnopqrstuvwxyz0123456789-") != ""
	if header == "" || other || slices.Contains(notForUsers, h.header) ||
		strings.HasPrefix(h.header, "Sec-") || strings.HasPrefix(h.header, "Acp-") {
		return h, fmt.Errorf("%q is not a header that can name a user: "+
			"give one such as X-Forwarded-User or Remote-User", header)
	}
	for _, address := range proxies {
		prefix, err := netip.ParsePrefix(address)
		if single, failed := netip.ParseAddr(address); failed == nil {
			prefix, err = netip.PrefixFrom(single.Unmap(), single.Unmap().BitLen()), nil
		}
		if err != nil || prefix.Bits() <= 0 || prefix.Addr().Is4In6() {
			return h, fmt.Errorf("%q is not the address of a proxy: give one such as 10.0.0.7 or "+
				"10.1.0.0/24", address)
		}
		h.proxies = append(h.proxies, prefix)
	}
	if len(h.proxies) == 0 {
		return h, errors.New("name the addresses of the proxies that are believed, with --proxy")
	}
	if _, err := h.account("user"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return h, err
	}
	return h, nil
}

// named returns the name of the user whom the proxy names in a request. It returns false if no
// proxy names one; then the request needs a token. The name may be invalid: a request with several
// names has the name "". Capital letters become small, because most directories take them for the
// same.
func (h UserHeader) named(r *http.Request) (name string, ok bool) {
	values, ok := r.Header[h.header]
	if !ok || !h.believes(r.RemoteAddr) {
		return "", false
	}
	if len(values) != 1 {
		return "", true
	}
	return strings.Map(small, values[0]), true
}

// small returns the small letter of an ASCII letter. Others stay: of some, such as the Kelvin sign,
// the small one is that of another user's name.
func small(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r - 'A' + 'a'
	}
	return r
}

// believes reports whether a request with this remote address comes from one of the proxies.
func (h UserHeader) believes(remote string) bool {
	from, err := netip.ParseAddrPort(remote)
	return err == nil && slices.ContainsFunc(h.proxies, func(p netip.Prefix) bool {
		return p.Contains(from.Addr().Unmap())
	})
}

// account returns the account of a user for whom no file has one. The error is fs.ErrNotExist if
// such users may not connect.
func (h UserHeader) account(name string) (Account, error) {
	if len(h.within) == 0 {
		return Account{}, fs.ErrNotExist
	}
	var dirs []string
	for _, dir := range h.within {
		dirs = append(dirs, strings.ReplaceAll(dir, placeholder, name))
	}
	within, err := workspace.ParseDirs(dirs)
	return Account{Name: name, Within: within}, err
}

// account returns the account of a user, or what holds for users without one. The error is
// fs.ErrNotExist if the user may not connect.
func (s *Server) account(name string) (Account, error) {
	a, err := s.options.Accounts.Account(name)
	if errors.Is(err, fs.ErrNotExist) {
		return s.options.UserHeader.account(name)
	}
	return a, err
}

// errNobody is returned for a user whom a proxy names and who may not connect.
var errNobody = errors.New("the proxy names no user of this server")

// who returns who has sent a request.
func (s *Server) who(r *http.Request) (visitor, error) {
	name, ok := s.options.UserHeader.named(r)
	switch {
	case !ok && s.options.Page && proof(r) != "": // the request comes from the page
		return s.device(r)
	case !ok:
		return s.options.Accounts.findToken(websocket.Token(r), Bearer)
	}
	a, err := s.account(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errName) {
		err = errNobody
	}
	return visitor{Account: a}, err
}

package serve

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Origins are the web pages that may use the server besides its own, by what a browser names in the
// header Origin. A page must not use the rights of the people who look at it.
type Origins struct{ allowed map[string]bool }

// ParseOrigins returns the origins with these names, such as https://ui.example.org or
// tauri://localhost.
func ParseOrigins(names []string) (Origins, error) {
	o := Origins{make(map[string]bool)}
	for _, name := range names {
		u, err := url.Parse(name)
		switch {
		case err != nil || u.Scheme == "" || u.Host == "":
			return o, fmt.Errorf("%q is not an origin: give one such as https://ui.example.org",
				name)
		case u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
			strings.Trim(u.Path, "/") != "":
			return o, fmt.Errorf("%q must have only a scheme, a host and a port", name)
		case strings.Contains(u.Host, "*"):
			return o, fmt.Errorf("%q: name each host: patterns are not supported", name)
		}
		o.allowed[origin(u)] = true
	}
	return o, nil
}

// Admit reports whether a request comes from a page that may use the server, or from another
// program than a browser, which names no origin.
func (o Origins) Admit(r *http.Request) bool {
	given := r.Header.Values("Origin")
	if len(given) == 0 {
		return true
	}
	u, err := url.Parse(given[0])
	if err != nil || u.Host == "" || len(given) > 1 { // "null" is what any sandboxed page has
		return false
	}
	return strings.EqualFold(u.Host, r.Host) || o.allowed[origin(u)]
}

// origin returns the origin of a URL, as browsers write it.
func origin(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	standard := map[string]string{"http": ":80", "https": ":443"}[scheme]
	return scheme + "://" + strings.TrimSuffix(strings.TrimSuffix(host, standard), ":")
}

package sandbox

import (
	"fmt"
	"strconv"
	"strings"
)

// seatbeltProfile returns p as a profile for macOS, which sandbox-exec enforces. The last rule that
// matches decides.
func (p Policy) seatbeltProfile() string {
	var b strings.Builder
	rule := func(action, operation string, filters ...string) {
		fmt.Fprintf(&b, "(%s %s", action, operation)
		for _, filter := range filters {
			b.WriteString("\n  " + filter)
		}
		b.WriteString(")\n")
	}
	b.WriteString("(version 1)\n")
	rule("allow", "default")
	if p.Mode == Strict {
		rule("deny", "file-read*")
		rule("allow", "file-read-metadata") // names on the way to a file
		rule("allow", "file-read*", append(below(seatbeltPaths()...), `(literal "/")`)...)
		rule("allow", "file-read*", append(below(p.Read...), below(p.Write...)...)...)
	}
	rule("deny", "file-write*")
	rule("allow", "file-write*", append(below(p.Write...),
		`(regex #"^/dev/(null|zero|tty|ptmx|ttys[0-9]+)$")`, `(subpath "/dev/fd")`)...)
	if kept := p.kept(); len(kept) > 0 {
		rule("deny", "file-write*", below(kept...)...)
	}
	for _, dir := range below(p.Hidden...) {
		rule("deny", "file-read* file-write*", dir)
	}
	// means to make other processes act for it, or to reach them
	for _, operation := range []string{"appleevent-send", "lsopen"} {
		rule("deny", operation)
	}
	for _, operation := range []string{"signal", "mach-priv-task-port"} {
		rule("deny", operation)
		rule("allow", operation, "(target same-sandbox)")
	}
	switch {
	case p.Outlet != nil:
		rule("deny", "network-outbound")
		for _, port := range p.Outlet.Ports {
			rule("allow", "network-outbound",
				`(remote tcp "localhost:`+strconv.Itoa(int(port))+`")`)
		}
		for _, dir := range below(p.Write...) {
			rule("allow", "network-outbound", "(remote unix-socket "+dir+")")
		}
	case p.Ports.Limited:
		rule("deny", "network-outbound", `(remote tcp "*:*")`)
		for _, port := range p.Ports.List {
			rule("allow", "network-outbound", `(remote tcp "*:`+strconv.Itoa(int(port))+`")`)
		}
	}
	return b.String()
}

// seatbeltPaths returns what every process may read in mode Strict on macOS.
func seatbeltPaths() []string {
	return []string{"/System", "/Library", "/Applications", "/usr", "/bin", "/sbin", "/opt",
		"/nix/store", "/dev", "/private/etc", "/private/var/db", "/private/var/select",
		"/private/var/run"}
}

// below returns filters for what is at paths or below them.
func below(paths ...string) []string {
	filters := make([]string, len(paths))
	for i, path := range paths {
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path)
		filters[i] = `(subpath "` + quoted + `")`
	}
	return filters
}

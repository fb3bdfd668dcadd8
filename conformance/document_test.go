package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The states that a clause can be in.
const (
	proven = "proven"  // as far as the text goes, there is a test
	inPart = "in part" // there is a test, and the line says what is open
	open   = "open"    // the line says what is missing
)

// A clause is one of the contract's, as docs/conformance.md has it.
type clause struct {
	id     string
	status string
	rest   string   // what is open
	tests  []string // the lines of its list of tests
	first  int      // the line of the document at which tests begin
}

// A document is docs/conformance.md, line by line.
type document struct {
	lines   []string
	groups  []string // headings, "A. Roots and session lifecycle"
	clauses []clause
}

var (
	groupLine  = regexp.MustCompile(`^## ([A-Z]\. .+)$`)
	clauseLine = regexp.MustCompile(`^### (` + id + `)$`)
	statusLine = regexp.MustCompile(`^- Status: (proven|in part|open)(?:; (.+))?$`)
)

// parse reads the document, which must be in the form that its own text describes.
func parse(text string) (*document, error) {
	d := &document{lines: strings.Split(text, "\n")}
	for n, line := range d.lines {
		if m := groupLine.FindStringSubmatch(line); m != nil {
			d.groups = append(d.groups, m[1])
		}
		m := clauseLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		c := clause{id: m[1]}
		if err := c.read(d.lines, n+1); err != nil {
			return nil, fmt.Errorf("clause %s, line %d: %w", c.id, n+1, err)
		}
		if slices.ContainsFunc(d.clauses, func(o clause) bool { return o.id == c.id }) {
			return nil, fmt.Errorf("clause %s, line %d: it is there twice", c.id, n+1)
		}
		if len(d.groups) == 0 || d.groups[len(d.groups)-1][0] != c.id[0] {
			return nil, fmt.Errorf("clause %s, line %d: it belongs under the heading of group %c", c.id, n+1, c.id[0])
		}
		d.clauses = append(d.clauses, c)
	}
	return d, nil
}

// read takes the lines of one clause, from n up to the next heading.
func (c *clause) read(lines []string, n int) error {
	hasText, inTests := false, false
	for ; n < len(lines) && !strings.HasPrefix(lines[n], "#"); n++ {
		line := lines[n]
		if m := statusLine.FindStringSubmatch(line); m != nil {
			c.status, c.rest = m[1], m[2]
		}
		hasText = hasText || strings.HasPrefix(line, "> ")
		if strings.HasPrefix(line, "- Tests:") {
			c.first, inTests = n, true
		}
		if inTests = inTests && line != ""; inTests {
			c.tests = append(c.tests, line)
		}
	}
	switch {
	case !hasText:
		return fmt.Errorf("no text: a line that begins with %q", "> ")
	case c.status == "":
		return fmt.Errorf("no status: a line %q, or with \"in part; \" or \"open; \" and what is open", "- Status: proven")
	case c.first == 0:
		return fmt.Errorf("no tests: write %q and run \"make conformance\"", "- Tests: none")
	case c.status == proven && c.rest != "":
		return fmt.Errorf("what is proven has nothing open: say \"in part\" if %q is", c.rest)
	case c.status != proven && c.rest == "":
		return fmt.Errorf("it is %s: say after a semicolon what is open", c.status)
	}
	return nil
}

// render gives the document with what is generated in it made anew.
func (d *document) render(all []claim) string {
	out := slices.Clone(d.lines)
	for _, c := range slices.Backward(d.clauses) {
		out = slices.Replace(out, c.first, c.first+len(c.tests), testLines(c.id, all)...)
	}
	out = replaceBlock(out, "summary", d.summary())
	out = replaceBlock(out, "elsewhere", elsewhere(all))
	return strings.Join(out, "\n")
}

// testLines lists the tests of one clause by file.
func testLines(id string, all []claim) []string {
	lines := []string{"- Tests:"}
	last := ""
	for _, c := range all {
		if c.id != id {
			continue
		}
		if c.path == last {
			lines[len(lines)-1] += ", `" + c.name + "`"
			continue
		}
		last = c.path
		lines = append(lines, fmt.Sprintf("  - [%s](../%s)%s: `%s`", c.path, c.path, where(c.on), c.name))
	}
	if len(lines) == 1 {
		return []string{"- Tests: none"}
	}
	return lines
}

func where(on []string) string {
	if on == nil {
		return ""
	}
	return " (" + strings.Join(on, ", ") + ")"
}

// summary counts the clauses of each group by status.
func (d *document) summary() []string {
	lines := []string{"| Group | Proven | In part | Open |", "|---|---|---|---|"}
	for _, g := range d.groups {
		count := map[string]int{}
		for _, c := range d.clauses {
			if c.id[0] == g[0] {
				count[c.status]++
			}
		}
		lines = append(lines, fmt.Sprintf("| %s | %d | %d | %d |", g, count[proven], count[inPart], count[open]))
	}
	return lines
}

// elsewhere lists the tests that some platform does not build.
func elsewhere(all []claim) []string {
	var lines []string
	for _, c := range all {
		if c.on != nil {
			lines = append(lines, fmt.Sprintf("- %s: `%s`, %s", strings.Join(c.on, ", "), c.name, c.path))
		}
	}
	if lines == nil {
		return []string{"- none"}
	}
	return slices.Compact(slices.Sorted(slices.Values(lines)))
}

// replaceBlock puts body between the two comments that mark a generated block.
func replaceBlock(lines []string, name string, body []string) []string {
	from := slices.Index(lines, "<!-- generated: "+name+" -->")
	if from < 0 {
		return lines
	}
	end := slices.Index(lines[from:], "<!-- end -->")
	if end < 0 {
		return lines
	}
	return slices.Replace(lines, from+1, from+end, body...)
}

package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var page = filepath.Join(repository, "docs", "conformance.md")

func readPage(t *testing.T) (string, *document) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	d, err := parse(string(text))
	require.NoError(t, err, "docs/conformance.md")
	require.NotEmpty(t, d.clauses)
	return string(text), d
}

func TestEveryProvenClauseHasATest(t *testing.T) {
	_, d := readPage(t)
	all := claims(t)
	for _, c := range d.clauses {
		has := slices.ContainsFunc(all, func(cl claim) bool { return cl.id == c.id })
		if c.status != open && !has {
			t.Errorf("docs/conformance.md calls %s %s, but no test carries its id: "+
				"write a Test%s_…, or make its status \"open; \" with what is open", c.id, c.status, c.id)
		}
	}
}

func TestEveryTestNamesAClauseThatExists(t *testing.T) {
	_, d := readPage(t)
	for _, c := range claims(t) {
		known := slices.ContainsFunc(d.clauses, func(o clause) bool { return o.id == c.id })
		assert.Truef(t, known, "%s: %s names %s, which is no clause of docs/conformance.md", c.path, c.name, c.id)
	}
}

func TestTheListsOfTestsAreThoseThatExist(t *testing.T) {
	text, d := readPage(t)
	want := d.render(claims(t))
	if text == want {
		return
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	now, err := parse(want)
	require.NoError(t, err)
	stale := []string{"what it counts"}
	for i, c := range d.clauses {
		if !slices.Equal(now.clauses[i].tests, c.tests) {
			stale = append(stale, "the tests of "+c.id)
		}
	}
	t.Errorf("docs/conformance.md is out of date (%s): run \"make conformance\" and commit the page with your change",
		strings.Join(stale, ", "))
}

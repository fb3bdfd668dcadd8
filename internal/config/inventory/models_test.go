package inventory

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/config"
)

// What a server offers is printed on one line of limited length.
func TestHostileOffers(t *testing.T) {
	var out bytes.Buffer
	offers := []string{"a", "b\n\nhttp://elsewhere offers c\x1b[2J", strings.Repeat("x", 1<<20)}
	require.NoError(t, PrintModels(&out,
		[]Model{{ID: "m", BaseURL: "http://127.0.0.1", Name: "a", Answer: Answer{Offers: offers}}}))
	require.Equal(t, 4, strings.Count(out.String(), "\n"), out.String()[:200])
	require.NotContains(t, out.String(), "\x1b")
	require.Less(t, out.Len(), 2*maxOffers)
}

// The examples in the documentation are valid.
func TestModelExamples(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/model.md")
	require.NoError(t, err)
	count := 0
	for i, block := range strings.Split(string(doc), "```json\n") {
		example, _, _ := strings.Cut(block, "```")
		if i == 0 || !strings.Contains(example, `"models"`) {
			continue
		}
		c, err := config.Parse("config.json", []byte(example))
		require.NoError(t, err)
		for _, id := range c.ModelIDs() {
			require.NotEmpty(t, newClient(c.ModelNamed(id)).Model().BaseURL, id)
			count++
		}
	}
	require.Equal(t, 11, count)
}

func TestFallbackIsKnown(t *testing.T) {
	for _, other := range []string{"other", "m"} {
		_, err := config.Parse("config.json", []byte(`{"models":{"m":{"baseURL":`+
			`"http://127.0.0.1/v1","fallback":"`+other+`"}}}`))
		require.ErrorContains(t, err, `models.m: fallback: "`+other+`" is not another model`)
	}
}

// A server need not list its models.
func TestServersWithoutLists(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusMethodNotAllowed} {
		reports, printed := asked(t, func(w http.ResponseWriter) { w.WriteHeader(status) })
		require.NoError(t, Unusable(reports))
		require.True(t, reports[0].Unlisted)
		require.Regexp(t, `(?m)^m +openai +\S+ +m +unknown +none$`, printed)
		require.Contains(t, printed, "/v1 does not list its models\n")
		require.NotContains(t, printed, "does not offer")
	}
}

// A server can be without models.
func TestServersWithoutModels(t *testing.T) {
	reports, printed := asked(t, func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"data":null}`)) })
	require.ErrorContains(t, Unusable(reports), "the server does not offer: m")
	require.Contains(t, printed, "/v1 offers no models\n")
}

// asked describes model m of a server that answers all requests alike.
func asked(t *testing.T, answer func(http.ResponseWriter)) (reports []Model, printed string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
	defer server.Close()
	c, err := config.Parse("config.json", []byte(`{"models":{"m":{"baseURL":"`+server.URL+`/v1"}}}`))
	require.NoError(t, err)
	reports, err = Models(t.Context(), c, []string{"m"})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, PrintModels(&out, reports))
	return reports, out.String()
}

package mcpclient

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestPromptArguments(t *testing.T) {
	p := &mcp.Prompt{Arguments: []*mcp.PromptArgument{{Name: "city", Required: true}, nil,
		{Name: "state"}}}
	require.Equal(t, "city [state]", argumentsHint(p))
	for typed, want := range map[string]map[string]string{
		"Bern":                             {"city": "Bern"},
		" Bern  canton of Bern ":           {"city": "Bern", "state": "canton of Bern"},
		"city=Bern":                        {"city": "Bern"},
		`state="canton of Bern" city=Bern`: {"city": "Bern", "state": "canton of Bern"},
		"country=CH":                       {"city": "country=CH"},
		`city=Bern a state`:                {"city": "city=Bern", "state": "a state"},
		`city="a=b" state=c=d`:             {"city": "a=b", "state": "c=d"},
	} {
		given, err := promptArguments(p, typed)
		require.NoError(t, err, typed)
		require.Equal(t, want, given, typed)
	}
	for _, typed := range []string{"", " ", "state=Bern"} {
		_, err := promptArguments(p, typed)
		require.ErrorContains(t, err, `needs the argument "city"`, typed)
	}
	given, err := promptArguments(&mcp.Prompt{}, " ")
	require.NoError(t, err)
	require.Empty(t, given)
	_, err = promptArguments(&mcp.Prompt{}, "x")
	require.ErrorContains(t, err, "takes no arguments")
}

package content_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/content"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// findings returns the violations that a check finds in the member x of an object with a member.
func findings(
	t *testing.T, member string, check func(*strictjson.Violations, strictjson.Field),
) string {
	params, err := strictjson.ParseObject(backend.Raw("{" + member + "}"))
	require.NoError(t, err)
	var v strictjson.Violations
	check(&v, params.Field("x"))
	var all []string
	for _, one := range strictjson.ViolationsOf(v.Err()) {
		all = append(all, one.Field+" "+string(one.Reason))
	}
	return strings.Join(all, ", ")
}

// A block has only what the protocol knows, since it is stored and shown again.
//
// Clause W2.
func TestCheckBlock(t *testing.T) {
	for block, wrong := range map[string]string{
		`{"type":"text"}`:                                 "x.text required",
		`{"type":"text","text":null}`:                     "x.text null",
		`{"type":"image","data":"AA=="}`:                  "x.mimeType required",
		`{"type":"image","data":1,"mimeType":"x"}`:        "x.data type",
		`{"type":"resource"}`:                             "x.resource required",
		`{"type":"resource","resource":{"text":"x"}}`:     "x.resource.uri required",
		`{"type":"resource","resource":{"uri":"a:b"}}`:    "x.resource.text required",
		`{"type":"video","data":"AA==","mimeType":"v/x"}`: "x.type unsupported",
		`7`:                                    "x type",
		`{"type":"text","text":"","_meta":[]}`: "x._meta type",

		`{"type":"text","text":"","annotations":{"audience":"user"}}`:            "x.annotations.audience type",
		`{"type":"text","text":"","annotations":{"priority":"1"}}`:               "x.annotations.priority type",
		`{"type":"text","text":"","annotations":{"lastModified":1}}`:             "x.annotations.lastModified type",
		`{"type":"resource","resource":{"uri":"a:b","text":"x","mimeType":5}}`:   "x.resource.mimeType type",
		`{"type":"resource","resource":{"uri":"a:b","text":"x","_meta":"more"}}`: "x.resource._meta type",

		`{"type":"text","text":"","_meta":null,"annotations":null}`: "",
		`{"type":"text","text":"","annotations":{"audience":["user"],` +
			`"priority":0.5,"lastModified":null}}`: "",
		`{"type":"image","data":"AA==","mimeType":"image/png","uri":null,"_x":1}`: "",
		`{"type":"resource","resource":{"uri":"a:b","blob":"AA==","text":null}}`:  "",
	} {
		require.Equal(t, wrong, findings(t, `"x":`+block, content.CheckBlock), block)
	}
}

// Instructions that cannot be followed as a whole are refused.
//
// Clause A5.
func TestCheckSystemPrompt(t *testing.T) {
	const text = `{"type":"text","text":"Be brief."}`
	served, refused := backend.SystemPromptsServed, backend.SystemPromptsRefused
	for _, c := range []struct {
		by          backend.SystemPrompts
		said, wrong string
	}{
		{served, ``, ""},
		{served, `"x":{"mode":"append","content":[` + text + `,` + text + `]}`, ""},
		{served, `"x":{"mode":"override","content":[` + text + `],"_meta":{"a":1}}`, ""},
		{served, `"x":7`, "x type"},
		{served, `"x":{}`, "x.mode required, x.content required"},
		{served, `"x":{"mode":"prepend","content":[` + text + `]}`, "x.mode unsupported"},
		{served, `"x":{"mode":"append","content":[]}`, "x.content empty"},
		{served, `"x":{"mode":"append","content":[` + text + `,"more"]}`, "x.content type"},
		{served, `"x":{"mode":"append","content":[{"type":"text","text":" \n"}]}`, "x.content[0].text empty"},
		{served, `"x":{"mode":"append","content":[{"type":"image"}]}`, "x.content[0].type unsupported"},
		{refused, `"x":{"mode":"append","content":[` + text + `]}`, "x unsupported"},
		{backend.SystemPromptsUnchecked, `"x":7`, ""},
	} {
		check := func(v *strictjson.Violations, f strictjson.Field) {
			content.CheckSystemPrompt(v, f, c.by)
		}
		require.Equal(t, c.wrong, findings(t, c.said, check), c.said)
	}
}

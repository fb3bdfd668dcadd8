package strictjson_test

import (
	"encoding/json"
	"fmt"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

func Example() {
	params := json.RawMessage(`{"CWD": "/app", "dirs": ["/lib", null], "_meta": {"trace": 1}}`)

	shape := &strictjson.Shape{Fields: map[string]*strictjson.Shape{"cwd": nil, "dirs": nil}}
	for _, v := range strictjson.Check(params, shape) {
		fmt.Println(v)
	}

	o, err := strictjson.ParseObject(params)
	if err != nil {
		fmt.Println(err)
		return
	}
	var wrong strictjson.Violations
	wrong.Text(o.Field("cwd"))
	wrong.Texts(o.Field("dirs"))
	for _, v := range strictjson.ViolationsOf(wrong.Err()) {
		fmt.Println(v)
	}
	// Output:
	// CWD is spelled in the wrong case: write cwd
	// cwd is missing: it is required
	// dirs[1] is null: omit it or give a value
}

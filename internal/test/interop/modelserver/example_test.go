package modelserver_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

func ExampleStart() {
	s, err := modelserver.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	// An agent would send this, with the prompt that its user gave it.
	body := fmt.Sprintf(`{"model": "any", "max_tokens": 100, "messages": [{"role": "user", "content": %q}], "tools": [
		{"name": "Read", "input_schema": {"properties": {"file_path": {"type": "string"}}}}]}`,
		modelserver.Prompt("What does it say?", modelserver.Read("/src/a.txt"),
			modelserver.Say("Nothing.")))
	answer, err := http.Post(s.URL()+"/v1/messages", "application/json", strings.NewReader(body))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	fmt.Println(strings.Contains(string(text), `"input":{"file_path":"/src/a.txt"},"name":"Read"`),
		err)
	fmt.Println(s.Requests()[0].Of(modelserver.User))
	// Output:
	// true <nil>
	// [What does it say?
	// model: {"do":"read","path":"/src/a.txt"}
	// model: {"do":"say","text":"Nothing."}]
}

package mcproots

import (
	"bytes"
	"encoding/json"
)

// Mend makes a server's message readable for the SDK, which cannot read a question for roots that has no
// params, as the official TypeScript server writes it, and panics at one that is null. Transports pass what they
// receive through it. Other messages are returned as they are, and message is never changed.
func Mend(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"inputRequests"`)) {
		return message
	}
	var envelope map[string]json.RawMessage
	var result map[string]json.RawMessage
	var questions map[string]map[string]json.RawMessage
	if json.Unmarshal(message, &envelope) != nil || json.Unmarshal(envelope["result"], &result) != nil ||
		json.Unmarshal(result["inputRequests"], &questions) != nil {
		return message
	}
	for key, q := range questions {
		if q == nil {
			q = map[string]json.RawMessage{}
			questions[key] = q
		}
		if p := q["params"]; len(p) == 0 || string(p) == "null" {
			q["params"] = json.RawMessage("{}")
		}
	}
	var errs [3]error
	result["inputRequests"], errs[0] = json.Marshal(questions)
	envelope["result"], errs[1] = json.Marshal(result)
	mended, err := json.Marshal(envelope)
	if errs[0] != nil || errs[1] != nil || err != nil {
		return message
	}
	return mended
}

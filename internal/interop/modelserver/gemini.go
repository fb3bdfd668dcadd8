package modelserver

import (
	"encoding/json"
	"net/http"
)

// readGemini reads a request for Gemini content.
func readGemini(body []byte, r *Request) error {
	type part struct {
		Text             string
		FunctionCall     *struct{ Args json.RawMessage }
		FunctionResponse *struct{ Response json.RawMessage }
	}
	var asked struct {
		SystemInstruction struct{ Parts []part }
		Contents          []struct {
			Role  string
			Parts []part
		}
		Tools []struct {
			FunctionDeclarations []struct {
				Name                             string
				Parameters, ParametersJSONSchema json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return err
	}
	for _, p := range asked.SystemInstruction.Parts {
		r.instruct(p.Text)
	}
	for _, c := range asked.Contents {
		said := User
		if c.Role == "model" {
			said = Said
		}
		for _, p := range c.Parts {
			switch {
			case p.FunctionResponse != nil:
				r.add(Result, string(p.FunctionResponse.Response))
			case p.FunctionCall != nil:
				r.add(Call, string(p.FunctionCall.Args))
			default:
				r.add(said, p.Text)
			}
		}
	}
	for _, t := range asked.Tools {
		for _, f := range t.FunctionDeclarations {
			schema := f.ParametersJSONSchema
			if schema == nil {
				schema = f.Parameters
			}
			r.Tools = append(r.Tools, Tool{Name: f.Name, Schema: schema})
		}
	}
	return nil
}

func geminiAnswer(a act) object {
	part := object{"text": a.say}
	if a.tool.Name != "" {
		part = object{"functionCall": object{"name": a.tool.Name, "args": a.args}}
	}
	return object{
		"candidates":    []any{object{"index": 0, "content": object{"role": "model", "parts": []any{part}}, "finishReason": "STOP"}},
		"usageMetadata": object{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
		"modelVersion":  Model,
	}
}

func streamGemini(w http.ResponseWriter, _ Request, a act) { stream(w).data(geminiAnswer(a)) }

func writeGemini(w http.ResponseWriter, _ Request, a act) { send(w, geminiAnswer(a)) }

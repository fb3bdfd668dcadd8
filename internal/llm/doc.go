// Package llm sends requests to language models over HTTP: OpenAI chat completions, which many
// local servers speak too, OpenAI responses, and Anthropic messages.
//
//	client := llm.New(llm.Model{BaseURL: "http://127.0.0.1:11434/v1", Name: "qwen3"})
//	request := llm.Request{Messages: []llm.Message{llm.UserText("Hello")}}
//	for event, err := range client.Stream(ctx, request) { … }
//
// No conversation is kept between requests, and nothing but the request is sent to the server.
//
// # What repeats a request
//
// [Client.Stream] repeats it after temporary failures, adapted in the form that the server accepts,
// and authorized with a new key. An exchange is one request and its response. A stream is the body
// of the latter, and a decoder adds what it says to an answer.
//
// # A further wire format
//
// It needs a constant of type [API], a row of formats in format.go, and a file next to openai.go
// with the functions that the row names. Package acp/model exports the constant.
// internal/config/read.go lists it as a value of the key "api", internal/config/models.go checks
// the address, and internal/cli/cmd_models.go describes it. The advice about addresses in errors.go
// differs for one of them.
//
// # A server that differs from its format
//
// It needs a row in words.json, by which it is recognised: by its address, the name of the model,
// or the words with which it rejects a request. The format asks for the quirk where it encodes a
// request. The request is then sent again in the changed form, and so are all later ones.
package llm

// Package modelserver is a model endpoint on loopback that does as it is told: no network, no
// account, the same answer every time. Coding agents are pointed at it by their settings for the
// endpoint, and believe that a model answers.
//
//	POST /v1/chat/completions                          OpenAI chat completions
//	POST /v1/responses                                 OpenAI responses
//	POST /v1/messages, /v1/messages/count_tokens       Anthropic messages
//	POST /v1beta/models/NAME:streamGenerateContent     Gemini, also :generateContent and :countTokens
//	GET  /v1/models, /v1beta/models                    the only model, "scripted"
//
// What the model does stands in the user's prompt: [Prompt] writes orders as text, one a line, and
// the server reads them back from the conversation that the agent sends. It keeps no state between
// requests, so a conversation can go on after a restart of anything. The n-th answer after
// the orders carries out the n-th of them: it says something, or calls the tool that the agent offers for
// reading, editing or writing a file, whatever its name and the names of its arguments are; where there is none, the
// one for shell commands. When they are used up, the model says [Done]; where the agent offers no tools, as
// when it asks for a title, [Title].
//
// An agent that takes the server for its proxy as well gets nowhere else, and [Server.Unknown] says where it wanted to go.
//
// Every request is kept as a [Request], so that a test can see what the model was told.
package modelserver

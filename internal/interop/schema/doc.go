// Package schema holds what an agent writes against the JSON schema of ACP v1 (clause W1).
//
// The schema knows the params and results of each method, but not which result belongs to
// which method, and it accepts unknown members everywhere. So a [Conversation] is shown
// the lines of both sides in order: it finds the request that a response answers, and
// checks by itself that the envelope is JSON-RPC 2.0, that a request has one answer,
// and that params and results have no members which the schema does not name. Of what another agent says
// through us, [Schema.Relayed] takes members of the unstable schema and methods of its own as well.
//
//	s, err := schema.Load("node_modules/@agentclientprotocol/sdk/schema/v1")
//	c := s.Conversation()
//	c.Client(line)
//	err = c.Agent(line)
package schema

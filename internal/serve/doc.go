// Package serve serves users over the network, and connects an editor to such a server. Its caller
// decides what answers a user: the agent, the store, the folders.
//
// admit.go makes a connection of a user of a request, accounts.go, devices.go and user_header.go
// say who that is, and user.go what the connection is served with. link.go is the other side,
// between an editor and a server, and handover.go goes on with the next server when one has ended.
//
// Package websocket has the connections themselves, package budget limits the memory for their
// messages, and acp.Server the sessions and turns.
package serve

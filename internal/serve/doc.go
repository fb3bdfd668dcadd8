// Package serve serves users over the network, and connects an editor to such a server. Its caller
// decides what answers a user: the agent, the store, the folders.
//
//   - tokens.go: who may connect, and to which folders.
//   - origins.go: which web pages may connect.
//   - server.go: what a server needs, its loop, and its end.
//   - devices.go, page.go: browsers that are paired, and the page for them.
//   - restricted.go: what a paired browser may do.
//   - user_header.go: users whom a proxy names.
//   - admit.go: from a request to a connection of a user; tokens that are revoked.
//   - user.go: what a connection is served with, and what the users of a server may use.
//   - quota.go, retain.go: how much and how long the server stores of a user.
//   - audit.go, metrics.go, process_metrics.go, histogram.go, timed_store.go: what the operator sees of it.
//   - notify.go: what users are told who do not look.
//   - health.go: whether the session store can be used.
//   - certificate.go: TLS.
//   - peers.go: connections that come to a server although another one has them.
//   - link.go: the other side, between an editor and a server.
//   - handover.go: from a server that has ended to the next one.
//
// Package websocket has the connections themselves, package budget limits the memory for their
// messages, and acp.Server the sessions and turns.
package serve

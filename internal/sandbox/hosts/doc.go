// Package hosts lets a process that has no other network reach the hosts of a list.
//
// A [Host] is an entry of the list, and [Target] what a program asks for. [Hosts.Allow] decides
// about a target by its text alone. Nothing is resolved before it has allowed the name, because a
// name that is only resolved carries data to a name server too.
//
// [Proxy] is a proxy for HTTP, with CONNECT for everything else. For an allowed name it checks all
// addresses, and connects to one of those that it has checked, never to the name. So a name server
// cannot lead it elsewhere in between. An address of this machine or of a private network must be
// in the list itself.
//
// The proxy does not look into what it passes on through CONNECT. An allowed host can be used to
// carry data elsewhere; docs/security.md describes this for users.
package hosts

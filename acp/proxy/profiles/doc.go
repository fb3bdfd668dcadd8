// Package profiles describes the ACP agents that are known: how each is started, how it takes
// additional directories, and where it departs from the protocol.
//
// [Known] returns the table in known.txt, which has a row for each agent. A row names only what
// differs from an agent that follows the protocol, grouped by the fields of [Profile]: Start,
// Roots, Finds, Context, State and Replay. To add an agent, add a row; each field says what to find
// out.
//
// [Match] finds the profile for a command line, and [Identify] the name under which the sessions of
// its agent are stored.
package profiles

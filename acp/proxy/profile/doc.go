// Package profile knows ACP agents: how each is started, how it takes more directories than one, and
// where it departs from the protocol.
//
//	p, ok := profile.Find(profile.Known(), "opencode")
//	c := p.Start()                        // child.Command{Path: "opencode", Args: {"acp"}}
//	p, ok = profile.Match(profile.Known(), c) // the same, for a command that a person has typed
//
// A profile is data. An agent that none describes works as well: it is asked what it can do, and told of its
// directories by the protocol or in words.
//
// What a profile says of an agent was seen with the version in [Profile.Checked]. Where that is empty it is
// taken from the agent's own documentation, and nobody has tried it here.
package profile

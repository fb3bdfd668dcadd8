package discovery

// Kind says what an artifact is for.
type Kind string

// The kinds.
const (
	// Instruction is text that agents are to keep to while they work in a folder.
	Instruction Kind = "instruction"
	// Skill is a folder with instructions for one task, and what they need (agentskills.io).
	Skill Kind = "skill"
	// Command is a prompt that a person calls by name.
	Command Kind = "command"
	// MCPServer is the configuration of a Model Context Protocol server. It is found, never started.
	MCPServer Kind = "mcp_server"
)

// State says whether an artifact counts.
type State string

// The states. All but Active come with a reason.
const (
	// Active: it is what its name stands for.
	Active State = "active"
	// Shadowed: another artifact counts in its stead.
	Shadowed State = "shadowed"
	// Invalid: it cannot be read, or says too little to be used.
	Invalid State = "invalid"
	// TooLarge: the file has more bytes than are read.
	TooLarge State = "too_large"
)

// Rule names what a [Diagnostic] is about.
type Rule string

// The rules. Breaking one is reported, and the artifact is used nevertheless if it can be.
const (
	RuleEncoding         Rule = "encoding"              // text is UTF-8
	RuleFileName         Rule = "file-name"             // the file is named as the convention says, case included
	RuleFrontmatterYAML  Rule = "frontmatter/yaml"      // frontmatter is YAML
	RuleFrontmatterKey   Rule = "frontmatter/value"     // a key has a value of its type
	RuleSkillName        Rule = "skill/name"            // a skill has a name
	RuleSkillNameChars   Rule = "skill/name-characters" // of a-z, 0-9 and single hyphens inside
	RuleSkillNameLength  Rule = "skill/name-length"     // of at most 64 characters
	RuleSkillNameFolder  Rule = "skill/name-folder"     // equal to its folder's name
	RuleSkillDescription Rule = "skill/description"     // a skill has a description
	RuleDescription      Rule = "description-length"    // a description has at most 1024 characters
	RuleSkillCompat      Rule = "skill/compatibility"   // compatibility has 1 to 500 characters
	RuleSkillKey         Rule = "skill/unknown-key"     // only the specification's keys
	RuleCommandName      Rule = "command/name"          // a name that can be typed after a slash
	RuleImport           Rule = "import"                // an imported file can be read, within the roots and the hops
	RuleGlob             Rule = "glob"                  // a glob that can be matched
	RuleJSONComments     Rule = "mcp/comments"          // .mcp.json is JSON without comments
	RuleServerTransport  Rule = "mcp/transport"         // a server has either a command or a URL
	RuleServerInput      Rule = "mcp/input"             // a value that an editor would ask for
)

// Diagnostic is something about an artifact that a person may want to mend.
type Diagnostic struct {
	Rule    Rule   `json:"rule"`
	Message string `json:"message"`
}

// String is the message with its rule.
func (d Diagnostic) String() string { return d.Message + " (" + string(d.Rule) + ")" }

package acp

// The methods of ACP v1 that the adapter knows by name.
const (
	methodInitialize = "initialize"
	methodNew        = "session/new"
	methodLoad       = "session/load"
	methodResume     = "session/resume"
	methodFork       = "session/fork"
	methodPrompt     = "session/prompt"
	methodCancel     = "session/cancel"
	methodList       = "session/list"
	methodClose      = "session/close"
	methodDelete     = "session/delete"

	methodUpdate         = "session/update"
	methodReadFile       = "fs/read_text_file"
	methodWriteFile      = "fs/write_text_file"
	methodCreateTerminal = "terminal/create"
)

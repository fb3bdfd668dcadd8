package interop

import (
	"context"
	"errors"

	sdk "github.com/coder/acp-go-sdk"
)

// unasked is what the client of these tests is never asked for, since it advertises nothing.
type unasked struct{}

var errUnasked = errors.New("not advertised")

func (unasked) ReadTextFile(context.Context, sdk.ReadTextFileRequest) (r sdk.ReadTextFileResponse, err error) {
	return r, errUnasked
}

func (unasked) WriteTextFile(context.Context, sdk.WriteTextFileRequest) (r sdk.WriteTextFileResponse, err error) {
	return r, errUnasked
}

func (unasked) RequestPermission(context.Context, sdk.RequestPermissionRequest) (r sdk.RequestPermissionResponse, err error) {
	return r, errUnasked
}

func (unasked) CreateTerminal(context.Context, sdk.CreateTerminalRequest) (r sdk.CreateTerminalResponse, err error) {
	return r, errUnasked
}

func (unasked) KillTerminal(context.Context, sdk.KillTerminalRequest) (r sdk.KillTerminalResponse, err error) {
	return r, errUnasked
}

func (unasked) TerminalOutput(context.Context, sdk.TerminalOutputRequest) (r sdk.TerminalOutputResponse, err error) {
	return r, errUnasked
}

func (unasked) ReleaseTerminal(context.Context, sdk.ReleaseTerminalRequest) (r sdk.ReleaseTerminalResponse, err error) {
	return r, errUnasked
}

func (unasked) WaitForTerminalExit(context.Context, sdk.WaitForTerminalExitRequest) (r sdk.WaitForTerminalExitResponse, err error) {
	return r, errUnasked
}

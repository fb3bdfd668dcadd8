package backend

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// maxText is the most text that ReadTextFile returns, in bytes.
const maxText = 16 << 20

// Lines are the lines of a file that an fs/read_text_file asks for.
type Lines struct{ first, most int }

// ParseLines reads them from params. The error says everything that is wrong with them.
func ParseLines(params Raw) (Lines, error) {
	o, err := strictjson.ParseObject(params)
	if err != nil {
		return Lines{}, err
	}
	first, wrong := count(o.Field("line"), 1)
	most, alsoWrong := count(o.Field("limit"), math.MaxInt32)
	return Lines{first, most}, strictjson.Refuse(append(wrong, alsoWrong...)...)
}

// count reads a number that is at least 0, or returns otherwise if there is none.
func count(f strictjson.Field, otherwise int) (int, []strictjson.Violation) {
	if !f.Present() || f.IsNull() {
		return otherwise, nil
	}
	n, err := strconv.ParseFloat(string(f.Raw()), 64)
	if err != nil || n < 0 || n != math.Trunc(n) {
		return 0, []strictjson.Violation{
			f.Refuse(strictjson.Type).Expecting("a whole number that is not negative")}
	}
	return int(min(n, math.MaxInt32)), nil
}

// ServeFile answers an fs/read_text_file or fs/write_text_file in place of the client, with the
// file at path in w. [FileError] explains its errors.
func ServeFile(
	ctx context.Context, w *workspace.Workspace, method, path string, params Raw,
) (Raw, error) {
	if method == protocol.WriteTextFile {
		return writeTextFile(ctx, w, path, params)
	}
	lines, err := ParseLines(params)
	if err != nil {
		return nil, err
	}
	file, err := w.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ReadTextFile(ctx, file, lines)
}

func writeTextFile(
	ctx context.Context, w *workspace.Workspace, path string, params Raw,
) (Raw, error) {
	o, err := strictjson.ParseObject(params)
	if err != nil {
		return nil, err
	}
	content, wrong := o.Field("content").Text()
	if err := strictjson.Refuse(wrong...); err != nil {
		return nil, err
	}
	_, err = w.WriteFile(ctx, path, []byte(content), workspace.WriteOptions{})
	return Raw(`{}`), err
}

// FileError returns the error of [ServeFile], which is not nil, for the agent.
func FileError(method string, err error) error {
	code := jsonrpc.CodeInvalidParams
	if errors.Is(err, fs.ErrNotExist) {
		code = protocol.CodeNotFound
	}
	return jsonrpc.Errorf(code, "acp-agent refused %s: %v", method, err)
}

// ReadTextFile returns the result of an fs/read_text_file: lines of an open file.
func ReadTextFile(ctx context.Context, file *workspace.File, lines Lines) (Raw, error) {
	if lines.most == 0 { // which means something else in TextOptions
		return Encode(sdk.ReadTextFileResponse{}), nil
	}
	o := workspace.TextOptions{First: lines.first, MaxLines: lines.most, MaxBytes: maxText}
	text, err := file.ReadText(ctx, o)
	if err != nil {
		return nil, err
	}
	if text.Cut == workspace.CutByBytes || text.Cut == workspace.CutInLine {
		return nil, fmt.Errorf(
			"%s has more than %d MiB from line %d on: read fewer lines with limit",
			file.Ref().Path(), maxText>>20, text.First)
	}
	return Encode(sdk.ReadTextFileResponse{Content: text.Content}), nil
}

package backend

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/workspace"
)

// maxText is the most text that ReadTextFile returns, in bytes.
const maxText = 16 << 20

// ReadTextFile returns the result of an fs/read_text_file with these params: lines of an open file.
func ReadTextFile(ctx context.Context, file *workspace.File, params Raw) (Raw, error) {
	var r struct{ Line, Limit *int }
	if err := json.Unmarshal(params, &r); err != nil {
		return nil, err
	}
	o := workspace.TextOptions{MaxLines: math.MaxInt, MaxBytes: maxText}
	if r.Line != nil {
		o.First = *r.Line
	}
	if r.Limit != nil {
		o.MaxLines = max(*r.Limit, 1)
	}
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

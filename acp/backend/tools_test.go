package backend

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
)

// The size of an image is that of the image, not of the JSON that has it.
func TestBlockSize(t *testing.T) {
	data := base64.StdEncoding.EncodeToString(make([]byte, 70))
	require.Equal(t, 70, BlockSize(Raw(`{"type":"image","mimeType":"image/png","data":"`+data+`"}`)))
	require.Equal(t, 70, BlockSize(Raw(`{"type":"resource","resource":{"uri":"x:","blob":"`+data+`"}}`)))
	require.Equal(t, 15, BlockSize(Raw(`{"type":"text"}`)))
}

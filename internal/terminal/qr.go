package terminal

import (
	"strings"

	"rsc.io/qr"
)

// QR returns the QR code of a text in block characters, two modules each. Scanners expect a dark
// code on a light ground, and most terminals are dark: the characters are the ground.
func QR(content string) (string, error) {
	code, err := qr.Encode(content, qr.L)
	if err != nil {
		return "", err
	}
	ground := map[[2]bool]string{{false, false}: "█", {true, false}: "▄", {false, true}: "▀",
		{true, true}: " "}
	var b strings.Builder
	const margin = 2
	for y := -margin; y < code.Size+margin; y += 2 {
		for x := -margin; x < code.Size+margin; x++ {
			b.WriteString(ground[[2]bool{code.Black(x, y), code.Black(x, y+1)}])
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

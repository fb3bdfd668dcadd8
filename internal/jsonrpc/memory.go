package jsonrpc

import (
	"math"
	"runtime/debug"
	"time"
)

// large is the size of the messages, in bytes, whose memory is returned to the system when they are done with. By itself a
// process that has become idle keeps it.
const large = 8 << 20

// memoryTimer returns unused memory to the system. It is started by releaseMemory.
var memoryTimer = time.AfterFunc(math.MaxInt64, debug.FreeOSMemory)

// releaseMemory returns unused memory to the system after a moment without large messages, if a message of size bytes is large.
func releaseMemory(size int) {
	if size > large {
		memoryTimer.Reset(time.Second)
	}
}

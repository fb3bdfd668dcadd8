package mcprelay

import (
	"log/slog"
	"time"
)

// ListenWith is Listen with other times.
func ListenWith(dir string, log *slog.Logger, timeout, check time.Duration) (*Publisher, error) {
	return listen(dir, log, timeout, check)
}

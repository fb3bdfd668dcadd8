package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
)

// number is a flag's value that is a whole number with a lower bound.
type number struct {
	value *int
	least int
}

// String implements pflag.Value.
func (n number) String() string {
	if n.value == nil {
		return "0"
	}
	return strconv.Itoa(*n.value)
}

// Type implements pflag.Value.
func (number) Type() string { return "int" }

// Set implements pflag.Value.
func (n number) Set(text string) error {
	value, err := strconv.Atoi(text)
	if err != nil || value < n.least {
		return fmt.Errorf("give a whole number of at least %d", n.least)
	}
	*n.value = value
	return nil
}

// level is a flag's value that is a level of the log.
type level struct{ value *slog.Level }

// String implements pflag.Value.
func (l level) String() string {
	if l.value == nil {
		return ""
	}
	return strings.ToLower(l.value.String())
}

// Type implements pflag.Value.
func (level) Type() string { return "level" }

// Set implements pflag.Value.
func (l level) Set(text string) error {
	for _, known := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if strings.EqualFold(text, known.String()) {
			*l.value = known
			return nil
		}
	}
	return errors.New("give debug, info, warn or error")
}

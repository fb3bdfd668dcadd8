package model_test

import (
	"context"
	"errors"
	"os"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/model"
)

// A program that an editor starts, with a model that Ollama serves and one that needs a key.
func ExampleNew() {
	key := func(_ context.Context, rejected string) (string, error) {
		if key := os.Getenv("ANTHROPIC_API_KEY"); key != rejected {
			return key, nil
		}
		return "", errors.New("set ANTHROPIC_API_KEY to a key that is valid")
	}
	models := []model.Model{
		{ID: "local", API: model.OpenAI, BaseURL: "http://127.0.0.1:11434/v1", Name: "qwen3",
			ContextTokens: 32768},
		{ID: "big", API: model.Anthropic, Name: "claude-sonnet-4-5", Key: key},
	}
	_ = acp.Serve(context.Background(), os.Stdin, os.Stdout, acp.Options{
		Backend: func() backend.Backend { return model.New(model.Options{Models: models}) },
	})
}

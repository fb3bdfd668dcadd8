package sandbox

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// wrapper is a mechanism that starts programs with another one.
type wrapper struct {
	name string
	err  error
}

func (w wrapper) available(Policy) error { return w.err }

func (w wrapper) run(_ Policy, l Launch, start func(Launch) error) error {
	return start(Launch{Path: w.name, Args: append([]string{w.name}, l.Args...)})
}

func TestChoose(t *testing.T) {
	missing, also := unavailable("no program"), unavailable("no namespaces")
	p := Policy{Mode: Write}
	best, second := wrapper{name: "/bin/one"}, wrapper{name: "/bin/two"}
	require.Equal(t, best, choose([]mechanism{best, second}, p))
	require.Equal(t, second, choose([]mechanism{wrapper{err: missing}, second}, p))
	last := choose([]mechanism{wrapper{err: missing}, wrapper{err: also}}, p)
	require.Equal(t, also, last.available(p))
}

func TestRunWithoutPolicy(t *testing.T) {
	launch := Launch{Path: "/bin/true", Args: []string{"true"}}
	require.NoError(t, Policy{}.Run(launch, func(l Launch) error {
		require.Equal(t, launch, l)
		return nil
	}))
}

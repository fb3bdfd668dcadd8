package agents

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
)

const beginIdentity = "<!-- make interop-agents writes what follows of sessions -->\n"

// identityHeading is the heading of the fourth table.
var identityHeading = []string{"agent", "title in lists", "deleted in the agent", "other flags",
	"the agent's own ids"}

// TestIdentityTable fills the fourth table, which takes minutes.
func TestIdentityTable(t *testing.T) {
	onlyInSurvey(t)
	surveyAll(t, beginIdentity, headingOf(identityHeading), func(t *testing.T, s *stage) string {
		cells := []string{s.subject.name}
		for _, try := range []func(*testing.T, *stage) (string, error){
			listedTitle, deletedAlone, otherFlags, ownID,
		} {
			cell, err := try(t, onStage(t, s.subject)) // each in a home of its own
			if err != nil {
				t.Logf("%s: %v", s.subject.name, err)
				cell = "**no**"
			}
			cells = append(cells, cell)
		}
		t.Logf("\n%s", row(cells))
		return row(cells)
	})
}

// without runs a turn with the agent alone and returns the agent's id of its session.
func (s *stage) without(t *testing.T) string {
	t.Helper()
	alone := s.alone(t, noFiles)
	defer alone.leave()
	made, err := alone.NewSession(within(t), client.Setup{Roots: s.roots(t)})
	require.NoError(t, err)
	s.prompt(alone, made.ID, asked, modelserver.Say(answered))
	return made.ID
}

// titles returns the titles of the sessions in the working directory by their ids.
func (s *stage) titles(t *testing.T, e *editor) map[string]string {
	t.Helper()
	titles := map[string]string{}
	for listed, err := range e.Sessions(within(t), client.Query{Cwd: s.roots(t).Cwd()}) {
		require.NoError(t, err)
		titles[listed.ID] = ""
		if listed.Title != nil {
			titles[listed.ID] = *listed.Title
		}
	}
	return titles
}

// settled repeats look until it returns nil, for longer than a list of the agent may be late.
func settled(look func() error) (err error) {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		if err = look(); err == nil {
			return nil
		}
	}
	return err
}

// listedTitle says how a session is titled behind the program: by the agent, or with what the user
// typed. It fails if the agent's own list has a title of the model that ours lacks.
func listedTitle(t *testing.T, s *stage) (cell string, err error) {
	e := s.behind(t, noFiles)
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t)})
	require.NoError(t, err)
	s.prompt(e, made.ID, asked, modelserver.Say(answered))
	_ = settled(func() error { // some agents ask for a title meanwhile
		if slices.ContainsFunc(s.model.Requests(), func(r modelserver.Request) bool { return !r.Asks() }) {
			return nil
		}
		return errors.New("no request for a title")
	})
	e.leave()
	want, cell := asked, "the first prompt"
	alone := s.alone(t, noFiles)
	if alone.agent.List {
		for _, title := range s.titles(t, alone) {
			if title == modelserver.Title {
				want, cell = title, "the agent's"
			}
		}
	}
	alone.leave()
	e = s.behind(t, noFiles)
	defer e.leave()
	return cell, settled(func() error {
		switch title := s.titles(t, e)[made.ID]; {
		case title == want, want == asked && strings.HasPrefix(title, asked):
			return nil
		case title == modelserver.Title: // the agent alone does not list it
			cell = "the agent's"
			return nil
		default:
			return fmt.Errorf("the title is %q, not %q", title, want)
		}
	})
}

// deletedAlone says what happens to a session that is deleted in the agent.
func deletedAlone(t *testing.T, s *stage) (string, error) {
	own := s.without(t)
	e := s.behind(t, noFiles)
	err := settled(func() error {
		if len(s.titles(t, e)) == 0 {
			return errors.New("the agent's session is not listed")
		}
		return nil
	})
	e.leave()
	if err != nil {
		return "is not listed", nil
	}
	if !s.deleteAlone(t, own) {
		return "cannot be deleted there", nil
	}
	e = s.behind(t, noFiles)
	defer e.leave()
	if settled(func() error {
		if len(s.titles(t, e)) > 0 {
			return errors.New("it is still listed")
		}
		return nil
	}) != nil {
		return "is kept", nil
	}
	return "disappears", nil
}

// otherFlags fails unless a session is the same one with other flags.
func otherFlags(t *testing.T, s *stage) (string, error) {
	e := s.behind(t, noFiles)
	made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, s.first)})
	require.NoError(t, err)
	s.prompt(e, made.ID, asked, modelserver.Say(answered))
	e.leave()
	s.ageChats(t)
	other := s.subject.other
	e = s.open(t, noFiles, append([]string{program.Path(), "--state-dir", s.state, "--"}, other...))
	defer e.leave()
	if ids := e.listed(s.query(t, s.first)); !slices.Equal(ids, []string{made.ID}) {
		return "", fmt.Errorf("listed: %q", ids)
	}
	setup := client.Setup{Roots: s.roots(t, s.first)}
	if _, err := e.LoadSession(within(t), made.ID, setup); err != nil {
		return "", err
	}
	same := "the same sessions"
	return same, errors.Join(expect("the replay", e.heard(made.ID), answered), s.goesOn(t, e, made.ID))
}

// ownID fails unless a session of the agent opens by the agent's own id, and is one session with
// the listed one.
func ownID(t *testing.T, s *stage) (string, error) {
	own := s.without(t)
	s.ageChats(t)
	e := s.behind(t, noFiles)
	defer e.leave()
	setup := client.Setup{Roots: s.roots(t)}
	if _, err := e.LoadSession(within(t), own, setup); err != nil {
		return "", err
	}
	if err := errors.Join(expect("the replay", e.heard(own), answered), s.goesOn(t, e, own)); err != nil {
		return "", err
	}
	if titles := s.titles(t, e); len(titles) != 1 {
		return "", fmt.Errorf("listed: %q", titles)
	}
	if strings.Count(e.heard(own), `"text":"`+answered) != 1 {
		return "", fmt.Errorf("the conversation is shown more than once: %s", e.heard(own))
	}
	return "open their sessions", nil
}

// ageChats renames the files of Gemini CLI's sessions to those of sessions created earlier. It
// cannot load a session in the minute in which it was created, because it then overwrites the file.
func (s *stage) ageChats(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.home, ".gemini/tmp/*/chats/session-*"))
	require.NoError(t, err)
	minute := regexp.MustCompile(`session-[^-]*-`)
	for _, file := range files {
		require.NoError(t, os.Rename(file, minute.ReplaceAllString(file, "session-2025-")))
	}
}

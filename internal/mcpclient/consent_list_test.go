package mcpclient_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcpclient"
)

func TestA25_WhatWasAllowedIsListedWithoutSecrets(t *testing.T) {
	dir := t.TempDir()
	consents := mcpclient.NewConsents(dir)
	all, err := mcpclient.NewConsents(filepath.Join(dir, "not there yet")).List()
	require.NoError(t, err)
	require.Empty(t, all)

	stdio := found(t, func(x *mcpclient.Candidate) { x.Config.Args = []string{"--token", "hunter2"} })
	remote := stdio
	remote.Config = mcpclient.Config{
		Name: "api", Transport: mcpclient.HTTP, URL: "https://me:hunter2@example.com:8443/hunter2?key=hunter2",
		Headers: []mcpclient.Pair{{Name: "Authorization", Value: "hunter2"}},
	}
	before := time.Now().Add(-time.Second)
	require.NoError(t, consents.Allow(stdio))
	require.NoError(t, consents.Allow(remote))

	all, err = consents.List()
	require.NoError(t, err)
	require.Len(t, all, 2)
	for _, one := range all {
		require.WithinRange(t, one.Allowed, before, time.Now())
	}
	all[0].Allowed, all[1].Allowed = time.Time{}, time.Time{}
	require.Equal(t, []mcpclient.Consent{
		{ID: remote.ID(), Server: "api", Root: remote.Root, File: remote.File, Origin: "https://example.com:8443"},
		{ID: stdio.ID(), Server: "db", Root: stdio.Root, File: stdio.File, Command: "sh"},
	}, all)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		require.NotContains(t, string(content), "hunter2")
	}
}

func TestA25_EveryRecordThatCountsIsListed(t *testing.T) {
	dir := t.TempDir()
	consents := mcpclient.NewConsents(dir)
	x := found(t, nil)
	require.NoError(t, consents.Allow(x))
	path := filepath.Join(dir, string(x.ID()))
	for name, content := range map[string]string{
		"empty": "", "no JSON": "{", "no root": `{"server":"db"}`, "relative": `{"server":"db","root":"a"}`, "types": `{"server":7}`,
		"time": `{"server":"db","root":"/a","allowed":"yesterday"}`, "huge": `{"server":"` + strings.Repeat("x", 1<<20) + `"}`,
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		allowed, err := consents.Allowed(x)
		require.NoError(t, err)
		require.True(t, allowed, name)
		all, err := consents.List()
		require.NoError(t, err)
		require.Len(t, all, 1, name)
		require.Equal(t, x.ID(), all[0].ID)
		require.Empty(t, all[0].Server, name)
		require.False(t, all[0].Allowed.IsZero())
	}
	// As it was written at first, without the time.
	require.NoError(t, os.WriteFile(path, []byte(`{"root":`+strconv.Quote(filepath.ToSlash(x.Root.String()))+`,"server":"db"}`+"\n"), 0o600))
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	require.NoError(t, os.Chtimes(path, when, when))
	all, err := consents.List()
	require.NoError(t, err)
	require.Equal(t, []mcpclient.Consent{{ID: x.ID(), Server: "db", Root: x.Root, Allowed: when}}, all)

	for _, name := range []string{".new-1", "notes", strings.Repeat("A", 64)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(`{}`), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, strings.Repeat("a", 64)), 0o700))
	all, err = consents.List()
	require.NoError(t, err)
	require.Len(t, all, 1, "what is no record is none")
}

func TestA25_AConsentIsFoundByItsBeginningAndForgotten(t *testing.T) {
	dir := t.TempDir()
	consents := mcpclient.NewConsents(dir)
	a, b := mcpclient.ConsentID(strings.Repeat("a", 64)), mcpclient.ConsentID("aab"+strings.Repeat("c", 61))
	for _, id := range []mcpclient.ConsentID{a, b} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, string(id)), nil, 0o600))
	}
	for _, beginning := range []mcpclient.ConsentID{"aab", b} {
		one, err := consents.Find(beginning)
		require.NoError(t, err)
		require.Equal(t, b, one.ID)
	}
	_, err := consents.Find("aa")
	var ambiguous *mcpclient.AmbiguousConsentError
	require.ErrorAs(t, err, &ambiguous)
	require.Equal(t, []mcpclient.ConsentID{a, b}, ambiguous.Matches)
	require.ErrorContains(t, err, "2 consents begin with aa")
	for _, beginning := range []mcpclient.ConsentID{"", "f", "../a"} {
		_, err = consents.Find(beginning)
		var unknown *mcpclient.UnknownConsentError
		require.ErrorAs(t, err, &unknown)
		require.Equal(t, beginning, unknown.ID)
	}

	require.NoError(t, consents.Forget(b))
	require.NoError(t, consents.Forget(b), "there is none any more")
	outside := filepath.Join(dir, "..", "outside")
	require.NoError(t, os.WriteFile(outside, nil, 0o600))
	require.NoError(t, consents.Forget("../outside"))
	require.FileExists(t, outside)
	all, err := consents.List()
	require.NoError(t, err)
	require.Len(t, all, 1)
}

func TestA25_WithoutAPlaceNothingIsListed(t *testing.T) {
	consents := mcpclient.NewConsents("")
	require.NoError(t, consents.Allow(found(t, nil)))
	all, err := consents.List()
	require.NoError(t, err)
	require.Empty(t, all)
	require.NoError(t, consents.Forget(found(t, nil).ID()))
}

func TestA25_AListThatCannotBeReadIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := mcpclient.NewConsents(file).List()
	require.ErrorContains(t, err, "cannot be listed")
}

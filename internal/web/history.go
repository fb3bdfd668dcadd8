package web

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// The sizes of what is read at once.
const (
	// pageUpdates and pageBytes say when a page ends: where an entry begins, once it has as many
	// updates or bytes. Without such a place it ends at longestPage times as many.
	pageUpdates = 100
	pageBytes   = 64 << 10
	longestPage = 20
	// scanUpdates is how many updates are looked at for one answer with pages.
	scanUpdates = 20_000
	// around is how many segments before a page are looked at first for the beginnings of its
	// calls.
	around = 16
	// longText is how much of a text is shown, in bytes.
	longText = 64 << 10
)

// place is where an update is in a history: the number of its segment and its index in there. It
// can be a number of JavaScript.
type place int64

const placeBits = 16 // a segment has fewer updates: see sessionstore.Pack

func newPlace(segment int64, index int) place { return place(segment<<placeBits | int64(index)) }

func (p place) segment() int64 { return int64(p >> placeBits) }

func placeOf(q url.Values, name string) (place, error) {
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: %s", errParameter, name)
	}
	return place(n), nil
}

// page is a part of a history: from its first update to before the next page's.
type page struct {
	From    place `json:"from"`
	To      place `json:"to"`
	Updates int   `json:"updates"`

	bytes int
}

// begins reports whether a page can begin with an update of a kind after one of another: its
// entries are then those of the whole history.
func begins(before, kind sessionstore.Kind) bool {
	switch kind {
	case sessionstore.ToolCall:
		return true
	case sessionstore.UserMessageChunk:
		return before != kind
	case sessionstore.AgentMessageChunk, sessionstore.AgentThoughtChunk:
		return before == sessionstore.ToolCall || before == sessionstore.UserMessageChunk ||
			before != kind && (before == sessionstore.AgentMessageChunk ||
				before == sessionstore.AgentThoughtChunk)
	}
	return false
}

// isFull reports whether a page ends before an update of a kind.
func (p page) isFull(before, kind sessionstore.Kind) bool {
	return (p.Updates >= pageUpdates || p.bytes >= pageBytes) && begins(before, kind) ||
		p.Updates >= longestPage*pageUpdates || p.bytes >= longestPage*pageBytes
}

// pages returns the pages of a history from a place on, which must be where one begins. More says
// that there are more than are returned.
func (o Options) pages(ctx context.Context, q url.Values) (any, error) {
	from, err := placeOf(q, "from")
	if err != nil {
		return nil, err
	}
	var (
		list   = []page{}
		now    = page{From: from}
		before sessionstore.Kind
		seen   int
	)
	history := o.Store.Segments(ctx, sessionstore.ID(q.Get("id")), from.segment()-1)
	for at, u := range updates(history, &err) {
		if at < from {
			continue
		}
		if now.Updates > 0 && now.isFull(before, u.Kind) {
			now.To = at
			list = append(list, now)
			now = page{From: at}
			if seen >= scanUpdates {
				return map[string]any{"pages": list, "more": true}, nil
			}
		}
		now.Updates++
		now.bytes += len(u.Raw)
		now.To = at + 1
		before = u.Kind
		seen++
	}
	if err != nil {
		return nil, err
	}
	if now.Updates > 0 {
		list = append(list, now)
	}
	return map[string]any{"pages": list, "more": false}, nil
}

// entries returns what a page shows. Calls are shown in their last state, where they began.
func (o Options) entries(ctx context.Context, q url.Values) (any, error) {
	from, err := placeOf(q, "from")
	if err != nil {
		return nil, err
	}
	to, err := placeOf(q, "to")
	if err != nil {
		return nil, err
	}
	id, near := sessionstore.ID(q.Get("id")), max(from.segment()-around-1, 0)
	r, err := o.read(ctx, id, near, from, to)
	if err == nil && r.Headless() && near > 0 {
		r, err = o.read(ctx, id, 0, from, to)
	}
	if err != nil {
		return nil, err
	}
	shown := conversation.Nodes(r.Entries(), longText)
	return map[string]any{"entries": shown, "unfinished": r.Unfinished()}, nil
}

// prompt returns the last prompt of a session, to send it again.
func (o Options) prompt(ctx context.Context, q url.Values) (any, error) {
	var err error
	r, last := conversation.NewReader(), ""
	for _, u := range updates(o.Store.Segments(ctx, sessionstore.ID(q.Get("id")), 0), &err) {
		if u.Kind == sessionstore.UserMessageChunk || u.Kind == sessionstore.TurnEndUpdate {
			r.Add(u)
		}
	}
	for _, e := range r.Entries() {
		if e.Kind == conversation.Prompt {
			last = e.Text
		}
	}
	return map[string]string{"text": last}, err
}

// read reads the updates in [from, to). It starts behind the segment after, so that it knows calls
// begun before from, and continues past to until all calls have ended.
func (o Options) read(
	ctx context.Context, id sessionstore.ID, after int64, from, to place,
) (r *conversation.Reader, err error) {
	r = conversation.NewReader()
	behind := 0
	for at, u := range updates(o.Store.Segments(ctx, id, after), &err) {
		if from <= at && at < to {
			r.Add(u)
			continue
		}
		if at >= to {
			if behind%50 == 0 && !r.Unfinished() {
				break
			}
			behind++
		}
		r.Outside(u)
	}
	return r, err
}

// updates yields the updates of segments with their places. It sets *err if it ends early.
func updates(
	segments func(func(sessionstore.Segment, error) bool), err *error,
) func(func(place, sessionstore.Update) bool) {
	return func(yield func(place, sessionstore.Update) bool) {
		for segment, failed := range segments {
			if failed != nil {
				*err = failed
				return
			}
			index := 0
			for u := range sessionstore.Unpack(segment.Body) {
				if !yield(newPlace(segment.Number, index), u) {
					return
				}
				index++
			}
		}
	}
}

package logsync

import (
	"context"
	"time"

	"qj/blob"
)

const (
	markerLife  = 60 * time.Second
	markerRenew = 30 * time.Second
	markerCheck = 5 * time.Second
)

// watch looks for a follower's marker, now and then. The marker's time is by the store's clock and this
// machine's may be wrong by more than a marker lives, so the two are not compared: a marker counts for
// its life from when it was first seen to be new.
type watch struct {
	store    blob.Store
	key      string
	asked    time.Time
	modified time.Time
	until    time.Time
}

// followed says whether somebody waits for the stream. A store that does not answer has no follower.
func (w *watch) followed(ctx context.Context) bool {
	now := time.Now()
	if now.Sub(w.asked) >= markerCheck {
		w.asked = now
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		if info, err := w.store.Stat(ctx, w.key); err == nil && !info.Modified.Equal(w.modified) {
			w.modified, w.until = info.Modified, now.Add(markerLife)
		}
	}
	return now.Before(w.until)
}

// beacon renews a follower's marker.
type beacon struct {
	store blob.Store
	key   string
	at    time.Time
}

// renew puts the marker if it is time. Failing costs only freshness: a follower may have no right to put.
func (b *beacon) renew(ctx context.Context) {
	if now := time.Now(); now.Sub(b.at) >= markerRenew {
		b.at = now
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		_ = blob.PutBytes(ctx, b.store, b.key, nil, blob.Replace)
	}
}

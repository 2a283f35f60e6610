package logsync

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstWait = time.Second
	longWait  = 30 * time.Second

	// How long one request may take before it counts as failed: a segment on a very slow line or a whole
	// listing, and something of a few bytes.
	transferTimeout = 2 * time.Minute
	requestTimeout  = 15 * time.Second
)

// backoff counts the waits between failing requests to a store.
type backoff struct{ wait time.Duration }

// next doubles the wait and returns a random half to all of it, so that the nodes of a job do not come
// back to a recovering store all together.
func (b *backoff) next() time.Duration {
	b.wait = min(max(2*b.wait, firstWait), longWait)
	return b.wait/2 + rand.N(b.wait/2)
}

func (b *backoff) reset() { b.wait = 0 }

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

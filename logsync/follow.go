package logsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"qj/blob"
)

// endPatience is how long a follower waits for bytes that are said to exist and do not come.
const endPatience = time.Minute

// FollowOptions are what a follower may be told.
type FollowOptions struct {
	Poll time.Duration // how often to look; 0 means every second

	// Ended says whether the stream has ended and how long it is in all; a negative length means that
	// nobody knows, and what the store has then is all. nil means that the stream never ends.
	Ended func() (final int64, ok bool)

	// Notify, if not nil, hears of each failed request, and with nil of the first that succeeds after.
	Notify func(error)
}

// Follow writes the bytes of a stream from offset `from` on to w as they arrive, and returns the offset
// after the last one written. While it runs, a marker in the store asks the node to be quick. It ends
// when the stream has ended and all of it is written, when w fails, when the store denies access, or with
// ctx; other errors of the store it survives, with back-off.
func Follow(ctx context.Context, store blob.Store, run string, s Stream, from int64, w io.Writer, opts FollowOptions) (int64, error) {
	f := follower{opts: opts, beacon: beacon{store: store, key: followKey(run, s)}, progress: time.Now()}
	for {
		final, ended := f.ended() // before looking: then nothing can come after the look
		if !ended {
			f.beacon.renew(ctx)
		}
		at, err := advance(ctx, store, run, s, from, w)
		if at > from || !ended {
			f.progress = time.Now()
		}
		from = at
		var broken writeError
		switch {
		case ctx.Err() != nil:
			return from, fmt.Errorf("follow log %s: %w", s, ctx.Err())
		case errors.As(err, &broken), errors.Is(err, fs.ErrPermission):
			return from, fmt.Errorf("follow log %s: %w", s, err)
		case ended && err == nil && from >= final:
			return from, nil
		case ended && time.Since(f.progress) >= endPatience:
			return from, f.incomplete(s, from, final, err)
		}
		if sleep(ctx, f.settle(err)) != nil {
			return from, fmt.Errorf("follow log %s: %w", s, ctx.Err())
		}
	}
}

// follower is one Follow.
type follower struct {
	opts     FollowOptions
	beacon   beacon
	backoff  backoff
	failure  error
	progress time.Time // when there was last a reason to wait
}

func (f *follower) ended() (int64, bool) {
	if f.opts.Ended == nil {
		return 0, false
	}
	return f.opts.Ended()
}

// settle notes how a look went and returns after how long to look again.
func (f *follower) settle(err error) time.Duration {
	if f.opts.Notify != nil && (err != nil || f.failure != nil) {
		f.opts.Notify(err)
	}
	f.failure = err
	if err != nil {
		return f.backoff.next()
	}
	f.backoff.reset()
	if f.opts.Poll > 0 {
		return f.opts.Poll
	}
	return time.Second
}

func (f *follower) incomplete(s Stream, from, final int64, err error) error {
	if err != nil {
		return fmt.Errorf("follow log %s: at byte %d: %w", s, from, err)
	}
	return fmt.Errorf("follow log %s: only %d of its %d bytes are in the store", s, from, final)
}

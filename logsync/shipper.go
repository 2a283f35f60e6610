package logsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"qj/blob"
)

// idleLook is how long a poke that got lost can delay the bytes that it told of.
const idleLook = 30 * time.Second

// Shipper sends a growing file to the store, one put at a time.
//
// A put without an answer, or of a process that was killed, may still be carried out, later than a longer
// one to the same key, and would undo it. So the shipper repeats such a put with the same bytes until it
// is answered, and never puts that segment any longer; it begins segments with put-if-absent, and none
// that some other process began is continued. The store must not repeat puts by itself (blob.Retry): the
// shipper would not know.
type Shipper struct {
	Store  blob.Store
	Folder string // of the run: "runs/<run id>"
	Stream Stream
	Path   string // the file; it only grows, and counts as empty while it is missing

	// Eager says whether the stream is to be fresh to the second, follower or not; nil means no.
	Eager func() bool

	// Notify, if not nil, hears of each failed request, and with nil of the first that succeeds after.
	Notify func(error)
}

// Run ships until ended is closed and every byte of the file is in the store, or until ctx ends. It
// returns how many bytes the store holds. grown, with a buffer of 1, is poked when the file has grown.
//
// An error of the store does not end Run: the file keeps everything, so it tries again, with back-off,
// until ctx ends. What segments in the store already hold is not sent again.
func (s *Shipper) Run(ctx context.Context, grown, ended <-chan struct{}) (int64, error) {
	sh := &shipment{
		Shipper: s,
		budget:  budget{credit: credit},
		taken:   -1,
		watch:   watch{store: s.Store, key: followKey(s.Folder, s.Stream)},
	}
	for {
		if err := ctx.Err(); err != nil {
			return sh.segment.end, sh.stopped(err)
		}
		size, err := s.size()
		if err != nil {
			return sh.segment.end, err
		}
		if sh.resumed && sh.last && size <= sh.segment.end {
			return sh.segment.end, nil
		}
		wait, err := sh.step(ctx, size)
		if err != nil {
			return sh.segment.end, err
		}
		if wait <= 0 {
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-grown:
		case <-ended:
			sh.last, ended = true, nil
		}
		timer.Stop()
	}
}

func (s *Shipper) size() (int64, error) {
	info, err := os.Stat(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("ship %s: %w", s.Stream, err)
	}
	return info.Size(), nil
}

// shipment is one Run of a Shipper.
type shipment struct {
	*Shipper
	budget
	watch watch

	resumed    bool      // whether segment holds what the store has
	last       bool      // no more bytes will come
	since      time.Time // when the oldest byte that is not stored was noticed
	unanswered *span     // the put to repeat
	taken      int64     // the offset at which somebody's segment was last in the way
	backoff    backoff
	retryAt    time.Time
	failure    error // of the latest request
}

// step makes at most one request that stores something, and returns after how long to look again.
func (sh *shipment) step(ctx context.Context, size int64) (time.Duration, error) {
	if wait := time.Until(sh.retryAt); wait > 0 {
		return wait, nil
	}
	if !sh.resumed {
		return sh.settle(ctx, sh.resume(ctx)), nil
	}
	if sh.unanswered != nil {
		return sh.put(ctx, *sh.unanswered)
	}
	if size <= sh.segment.end {
		return idleLook, nil
	}
	now := time.Now()
	if sh.since.IsZero() {
		sh.since = now
	}
	age := now.Sub(sh.since)
	if !sh.last && size-sh.segment.end < lazyBytes {
		if due := sh.due(ctx); age < due {
			return min(due-age, freshAfter), nil // the stream may become eager meanwhile
		}
	}
	put, ok := sh.next(size, !sh.last && age < patience)
	if !ok {
		return min(patience-age, freshAfter), nil
	}
	if put.end == size {
		sh.since = time.Time{}
	}
	return sh.put(ctx, put)
}

func (sh *shipment) due(ctx context.Context) time.Duration {
	if sh.Eager != nil && sh.Eager() || sh.watch.followed(ctx) {
		return freshAfter
	}
	return lazyAfter
}

// resume finds out what the store has, and begins a new segment there.
func (sh *shipment) resume(ctx context.Context) error {
	segments, err := listStream(ctx, sh.Store, sh.Folder, sh.Stream, 0)
	if err != nil {
		return err
	}
	end := contiguous(segments)
	sh.segment, sh.resumed = span{end, end}, true
	return nil
}

func (sh *shipment) put(ctx context.Context, s span) (time.Duration, error) {
	f, err := os.Open(sh.Path)
	if err != nil {
		return 0, fmt.Errorf("ship %s: %w", sh.Stream, err)
	}
	defer f.Close()
	mode := blob.Replace
	if s.start == sh.segment.end && s.start != sh.taken {
		mode = blob.IfAbsent
	}
	timed, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	body := io.NewSectionReader(f, s.start, s.end-s.start)
	err = sh.Store.Put(timed, segmentKey(sh.Folder, sh.Stream, s.start), body, mode)
	switch {
	case errors.Is(err, fs.ErrExist):
		// The first try arrived after all, or the last put of a killed process did: look what is there. If
		// it turns out to be empty, it is half of a put that was killed, and is replaced.
		sh.unanswered, sh.resumed, sh.taken = nil, false, s.start
		return 0, nil
	case err != nil:
		sh.unanswered = &s
	case sh.unanswered != nil:
		sh.unanswered, sh.segment = nil, span{s.end, s.end} // sealed, see Shipper
	default:
		sh.segment = s
	}
	return sh.settle(ctx, err), nil
}

// settle notes how a request went and returns when to look again.
func (sh *shipment) settle(ctx context.Context, err error) time.Duration {
	if ctx.Err() != nil {
		return 0 // nobody's failure; Run ends
	}
	if sh.Notify != nil && (err != nil || sh.failure != nil) {
		sh.Notify(err)
	}
	sh.failure = err
	if err == nil {
		sh.backoff.reset()
		return 0
	}
	wait := sh.backoff.next()
	sh.retryAt = time.Now().Add(wait)
	return wait
}

func (sh *shipment) stopped(err error) error {
	if sh.failure != nil && !errors.Is(sh.failure, err) {
		return fmt.Errorf("ship %s: %w (%w)", sh.Stream, err, sh.failure)
	}
	return fmt.Errorf("ship %s: %w", sh.Stream, err)
}

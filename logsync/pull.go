package logsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"qj/blob"
)

// pullWidth is how many streams are fetched at once.
const pullWidth = 8

// Pulled is a stream that lies on this machine.
type Pulled struct {
	Stream Stream
	Path   string
	Length int64 // of the local file
	New    int64 // how many bytes of it were fetched just now
}

// Pull brings the local copies below dir up to date, of every stream that want accepts (nil: all), with
// one listing, and fetches only bytes that are not there yet. It returns the copies in the order of List;
// after an error, those that are complete. Two pulls at once do no harm: they write the same bytes at the
// same offsets.
func Pull(ctx context.Context, store blob.Store, run, dir string, want func(Stream) bool) ([]Pulled, error) {
	streams, err := listRun(ctx, store, run)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]*Pulled, len(streams))
	places := make(chan struct{}, pullWidth)
	var group sync.WaitGroup
	for i, s := range streams {
		if want != nil && !want(s.stream) {
			continue
		}
		places <- struct{}{} // bounded: every holder ends with its context
		group.Go(func() {
			defer func() { <-places }()
			p, err := pullStream(ctx, store, run, dir, s)
			if err != nil {
				cancel(err) // the first one counts
				return
			}
			results[i] = &p
		})
	}
	group.Wait()
	var pulled []Pulled
	for _, p := range results {
		if p != nil {
			pulled = append(pulled, *p)
		}
	}
	return pulled, context.Cause(ctx)
}

func pullStream(ctx context.Context, store blob.Store, run, dir string, s listedStream) (_ Pulled, err error) {
	if ctx.Err() != nil {
		return Pulled{}, context.Cause(ctx)
	}
	path := s.stream.LocalPath(dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return Pulled{}, fmt.Errorf("pull log %s: %w", s.stream, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return Pulled{}, fmt.Errorf("pull log %s: %w", s.stream, err)
	}
	defer func() {
		if closing := f.Close(); err == nil && closing != nil {
			err = fmt.Errorf("pull log %s: %w", s.stream, closing)
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return Pulled{}, fmt.Errorf("pull log %s: %w", s.stream, err)
	}
	begin := info.Size()
	out := io.NewOffsetWriter(f, 0)
	if _, err := out.Seek(begin, io.SeekStart); err != nil {
		return Pulled{}, fmt.Errorf("pull log %s: %w", s.stream, err)
	}
	end, err := copySegments(ctx, store, s.segments, begin, out)
	if errors.Is(err, errGap) {
		end, err = advance(ctx, store, run, s.stream, end, out)
	}
	if err != nil {
		return Pulled{}, fmt.Errorf("pull log %s: %w", s.stream, err)
	}
	return Pulled{Stream: s.stream, Path: path, Length: end, New: end - begin}, nil
}

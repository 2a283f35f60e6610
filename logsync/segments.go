package logsync

import (
	"context"
	"errors"
	"fmt"
	"io"

	"qj/blob"
)

// segment is an object of a stream as some listing showed it; by now it may be longer.
type segment struct {
	key string
	span
}

// Have is a stream in the store.
type Have struct {
	Stream Stream
	Length int64 // bytes that the store surely holds
}

// List returns the streams of a run in the order of their keys, with one listing.
func List(ctx context.Context, store blob.Store, run string) ([]Have, error) {
	streams, err := listRun(ctx, store, run)
	if err != nil {
		return nil, err
	}
	have := make([]Have, len(streams))
	for i, s := range streams {
		have[i] = Have{s.stream, furthest(s.segments)}
	}
	return have, nil
}

type listedStream struct {
	stream   Stream
	segments []segment // by offset
}

func listRun(ctx context.Context, store blob.Store, run string) ([]listedStream, error) {
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	var streams []listedStream
	for info, err := range store.List(ctx, logsFolder(run), "") {
		if err != nil {
			return nil, fmt.Errorf("list logs: %w", err)
		}
		stream, offset, ok := parseSegmentKey(run, info.Key)
		if !ok {
			continue // not ours
		}
		if n := len(streams); n == 0 || streams[n-1].stream != stream {
			streams = append(streams, listedStream{stream: stream})
		}
		last := &streams[len(streams)-1]
		last.segments = append(last.segments, segment{info.Key, span{offset, offset + info.Size}})
	}
	return streams, nil
}

// listStream returns the segments of one stream that can hold bytes from offset `from` on.
func listStream(ctx context.Context, store blob.Store, run string, s Stream, from int64) ([]segment, error) {
	after := ""
	if from > maxSegment {
		after = segmentKey(run, s, from-maxSegment) // ends at `from` or before
	}
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	var segments []segment
	for info, err := range store.List(ctx, streamFolder(run, s), after) {
		if err != nil {
			return nil, fmt.Errorf("list log %s: %w", s, err)
		}
		if stream, offset, ok := parseSegmentKey(run, info.Key); ok && stream == s {
			segments = append(segments, segment{info.Key, span{offset, offset + info.Size}})
		}
	}
	return segments, nil
}

// furthest is the end of what the store holds: a segment begins only when all before it is stored.
func furthest(segments []segment) int64 {
	end := int64(0)
	for _, s := range segments {
		end = max(end, s.end)
	}
	return end
}

// contiguous is the end of what the segments show without a gap.
func contiguous(segments []segment) int64 {
	end := int64(0)
	for _, s := range segments {
		if s.start > end {
			break
		}
		end = max(end, s.end)
	}
	return end
}

// errGap says that no listed segment has the next byte, though later ones exist.
var errGap = errors.New("the store shows a gap")

// writeError tells a writer that failed from a store that failed.
type writeError struct{ error }

func (e writeError) Unwrap() error { return e.error }

// copySegments writes the bytes from offset `from` on to w, as far as the segments reach, and returns the
// offset after the last byte written.
func copySegments(ctx context.Context, store blob.Store, segments []segment, from int64, w io.Writer) (int64, error) {
	var source segment // of those that begin at `from` or before, the one that reaches furthest
	next := 0
	for {
		for ; next < len(segments) && segments[next].start <= from; next++ {
			if segments[next].end >= source.end {
				source = segments[next]
			}
		}
		if source.end <= from && next == len(segments) {
			return from, nil
		}
		if source.key == "" {
			return from, fmt.Errorf("%w at byte %d", errGap, from)
		}
		n, err := copyObject(ctx, store, source.key, from-source.start, w)
		from += n
		if err != nil {
			return from, err
		}
		if n == 0 {
			return from, fmt.Errorf("%w at byte %d", errGap, from)
		}
	}
}

// advance writes what the store has from offset `from` on. A gap may come from a listing that was taken
// while segments grew, so it looks twice.
func advance(ctx context.Context, store blob.Store, run string, s Stream, from int64, w io.Writer) (int64, error) {
	for try := 1; ; try++ {
		segments, err := listStream(ctx, store, run, s, from)
		if err != nil {
			return from, err
		}
		from, err = copySegments(ctx, store, segments, from, w)
		if !errors.Is(err, errGap) || try == 2 {
			return from, err
		}
	}
}

// copyObject copies an object from an offset on, however long it is by now.
func copyObject(ctx context.Context, store blob.Store, key string, offset int64, w io.Writer) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	r, err := store.Get(ctx, key, offset, -1)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	out := &output{w: w}
	n, err := io.Copy(out, r)
	if out.err != nil {
		return n, writeError{out.err}
	}
	if err != nil {
		return n, fmt.Errorf("get %s: %w", key, err)
	}
	return n, nil
}

// output remembers whether it was the writer that failed.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}

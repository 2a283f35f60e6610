package logsync

import "time"

// When to put, and how much again. A store bills each put and has room for a whole object only, so a
// fresh log is a short one put over and over. The rules, for a stream of L bytes:
//
//   - A put of n bytes, of which f are fresh, needs n ≤ 8f. Summed over all puts the fresh bytes are L,
//     so at most 8L bytes are put. Beyond that a stream may overdraw by `credit` in its life, in puts of
//     at most creditPut bytes: that keeps the first minutes of every log fresh to the second.
//   - When the rule forbids a put, the bytes wait for more to come; after `patience` they begin a new
//     segment instead, in which all bytes are fresh. So a segment ends early only when what came in 10 s
//     is under an eighth of it: with steady output it then spans at least 70 s, about 1,200 objects a day
//     at most, and its reader is at most 10 s behind.
//   - A segment of which less than an eighth is free is full: what would still fit could not pay for
//     putting it again.
const (
	freshAfter = time.Second
	lazyAfter  = 30 * time.Second
	lazyBytes  = 256 << 10

	overhead  = 8
	credit    = 1 << 20
	creditPut = 64 << 10
	patience  = 10 * time.Second
	fullAt    = maxSegment - maxSegment/overhead
)

// span is a range of a stream's bytes.
type span struct{ start, end int64 }

// budget decides which bytes one put may hold. Its segment is the active one, as the store has it.
type budget struct {
	segment span
	credit  int64
}

// next returns the segment to put when the stream has size bytes, more than are stored. With wait false
// the bytes have waited long enough; else false means that they should wait for more.
func (b *budget) next(size int64, wait bool) (span, bool) {
	stored := b.segment.end
	start := b.segment.start
	if stored-start >= fullAt {
		start = stored
	}
	put := span{start, min(size, start+maxSegment)}
	n, fresh := put.end-put.start, put.end-stored
	over := n - overhead*fresh
	switch {
	case over <= 0:
		return put, true
	case n <= creditPut && over <= b.credit:
		b.credit -= over
		return put, true
	case wait:
		return span{}, false
	}
	return span{stored, min(size, stored+maxSegment)}, true
}

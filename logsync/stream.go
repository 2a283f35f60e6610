// Package logsync carries a rank's output home while it is being written. A stream is a growing file on
// the node; in the store it is a series of objects, its segments, each named by the offset of its first
// byte. It knows no ranks, no runs and no records: only names of streams and a folder of the store.
//
// What a reader may rely on:
//
//   - A segment holds at most 1 MiB. The last one is put again, longer, as the stream grows.
//   - A segment begins only when the store holds every byte before it. So a gap between the listed size
//     of one segment and the next is a listing that has become old, not a loss: read on.
//   - Segments may overlap, after a process was killed and another took over. Equal offsets hold equal
//     bytes.
package logsync

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// maxSegment is the most bytes that one segment holds.
const maxSegment = 1 << 20

// Stream names one stream of a run: "rank-3", "setup-0", "launcher-0" or "usage-0" of one attempt.
type Stream struct {
	Attempt int // 0, then 1 after the first restart, …
	Name    string
}

var (
	attemptForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`)
	nameForm    = regexp.MustCompile(`^[a-z]{1,32}-(0|[1-9][0-9]{0,8})$`)
	offsetForm  = regexp.MustCompile(`^[0-9]{20}$`)
)

// String returns "<attempt>/<name>".
func (s Stream) String() string { return strconv.Itoa(s.Attempt) + "/" + s.Name }

// ParseStream reads what String writes.
func ParseStream(text string) (Stream, error) {
	attempt, name, _ := strings.Cut(text, "/")
	if !attemptForm.MatchString(attempt) || !nameForm.MatchString(name) {
		return Stream{}, fmt.Errorf("%q is not a stream (like 0/rank-3)", text)
	}
	n, err := strconv.Atoi(attempt)
	return Stream{n, name}, err
}

// LocalPath is where Pull keeps the stream below dir: `rank-0.log`, `restart-1/rank-0.log`.
func (s Stream) LocalPath(dir string) string {
	if s.Attempt > 0 {
		dir = filepath.Join(dir, "restart-"+strconv.Itoa(s.Attempt))
	}
	return filepath.Join(dir, s.Name+".log")
}

// segmentKey is the key of the segment of s that begins at offset; run is "runs/<run id>".
func segmentKey(run string, s Stream, offset int64) string {
	return fmt.Sprintf("%s%020d", streamFolder(run, s), offset)
}

// followKey is the key of the marker by which a follower asks for a stream to be fresh, whatever the
// attempt.
func followKey(run string, s Stream) string { return run + "/follow/" + s.Name }

func logsFolder(run string) string { return run + "/logs/" }

func streamFolder(run string, s Stream) string { return logsFolder(run) + s.String() + "/" }

// parseSegmentKey is the inverse of segmentKey; false for any other key.
func parseSegmentKey(run, key string) (Stream, int64, bool) {
	rest, ok := strings.CutPrefix(key, logsFolder(run))
	slash := strings.LastIndexByte(rest, '/')
	if !ok || slash < 0 || !offsetForm.MatchString(rest[slash+1:]) {
		return Stream{}, 0, false
	}
	stream, err := ParseStream(rest[:slash])
	if err != nil {
		return Stream{}, 0, false
	}
	offset, err := strconv.ParseInt(rest[slash+1:], 10, 64)
	return stream, offset, err == nil
}

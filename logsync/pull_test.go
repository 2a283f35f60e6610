package logsync

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"qj/blob"
	"qj/blob/blobtest"
)

// text is what every stream of these tests holds.
const text = "0123456789abcdefghijklmnopqrstuvwxyz"

// putSpan stores text[start:end] as a segment.
func putSpan(t *testing.T, store blob.Store, s Stream, start, end int) {
	t.Helper()
	if err := blob.PutBytes(t.Context(), store, segmentKey(testRun, s, int64(start)), []byte(text[start:end]), blob.Replace); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s = %q, %v, want %q", path, got, err, want)
	}
}

// oldListings is a store whose listings were all taken when it was made.
type oldListings struct {
	blob.Store
	infos []blob.Info
	old   int // how many listings are still old
}

func oldListing(t *testing.T, store blob.Store, count int) *oldListings {
	t.Helper()
	old := &oldListings{Store: store, old: count}
	for info, err := range store.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		old.infos = append(old.infos, info)
	}
	return old
}

func (o *oldListings) List(ctx context.Context, prefix, after string) iter.Seq2[blob.Info, error] {
	if o.old--; o.old < 0 {
		return o.Store.List(ctx, prefix, after)
	}
	return func(yield func(blob.Info, error) bool) {
		for _, info := range o.infos {
			if strings.HasPrefix(info.Key, prefix) && info.Key > after && !yield(info, nil) {
				return
			}
		}
	}
}

func TestPullReadsAnySegments(t *testing.T) {
	tests := []struct {
		name  string
		spans [][2]int // as listed
		then  [][2]int // put after the listing
		old   int      // how many listings are of before
		want  int
	}{
		{name: "one", spans: [][2]int{{0, 10}}, want: 10},
		{name: "several", spans: [][2]int{{0, 10}, {10, 20}, {20, 36}}, want: 36},
		{name: "overlapping", spans: [][2]int{{0, 10}, {5, 20}, {18, 19}, {20, 30}}, want: 30},
		{name: "within another", spans: [][2]int{{0, 30}, {5, 10}, {30, 36}}, want: 36},
		{name: "empty one between", spans: [][2]int{{0, 10}, {10, 10}}, want: 10},
		{name: "empty one, then more", spans: [][2]int{{0, 10}, {4, 4}, {10, 20}}, want: 20},
		{name: "grows after the listing", spans: [][2]int{{0, 10}}, then: [][2]int{{0, 15}}, old: 1, want: 15},
		{name: "listed size is old", spans: [][2]int{{0, 10}, {20, 25}}, then: [][2]int{{0, 20}}, old: 1, want: 25},
		{name: "listed size is old, overlap", spans: [][2]int{{0, 8}, {8, 10}, {20, 25}}, then: [][2]int{{8, 20}}, old: 1, want: 25},
		{name: "only a new listing shows it", spans: [][2]int{{0, 10}, {20, 25}}, then: [][2]int{{10, 20}}, old: 1, want: 25},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store, dir := &blobtest.Memory{}, t.TempDir()
			for _, s := range test.spans {
				putSpan(t, store, rank0, s[0], s[1])
			}
			reader := oldListing(t, store, test.old)
			for _, s := range test.then {
				putSpan(t, store, rank0, s[0], s[1])
			}
			pulled, err := Pull(t.Context(), reader, testRun, dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := []Pulled{{rank0, filepath.Join(dir, "rank-0.log"), int64(test.want), int64(test.want)}}
			if !slices.Equal(pulled, want) {
				t.Errorf("Pull = %+v, want %+v", pulled, want)
			}
			wantFile(t, want[0].Path, text[:test.want])
		})
	}
}

func TestPullReportsALoss(t *testing.T) {
	store, dir := &blobtest.Memory{}, t.TempDir()
	putSpan(t, store, rank0, 0, 10)
	putSpan(t, store, rank0, 20, 25)
	if pulled, err := Pull(t.Context(), store, testRun, dir, nil); !errors.Is(err, errGap) || len(pulled) != 0 {
		t.Errorf("Pull = %v, %v, want a gap", pulled, err)
	}
	wantFile(t, filepath.Join(dir, "rank-0.log"), text[:10])
}

func TestPullFetchesOnlyWhatIsNew(t *testing.T) {
	memory, dir := &blobtest.Memory{}, t.TempDir()
	var gets atomic.Int32
	store := &blobtest.Faults{Store: memory, Before: func(op blobtest.Op, _ string) error {
		if op == blobtest.Get {
			gets.Add(1)
		}
		return nil
	}}
	pull := func(wantNew, wantGets int) {
		t.Helper()
		gets.Store(0)
		pulled, err := Pull(t.Context(), store, testRun, dir, nil)
		if err != nil || len(pulled) != 1 || pulled[0].New != int64(wantNew) || int(gets.Load()) != wantGets {
			t.Errorf("Pull = %+v, %v with %d reads, want %d new bytes with %d", pulled, err, gets.Load(), wantNew, wantGets)
		}
	}
	putSpan(t, memory, rank0, 0, 10)
	pull(10, 1)
	pull(0, 0)
	putSpan(t, memory, rank0, 0, 12)
	pull(2, 1)
	putSpan(t, memory, rank0, 12, 36)
	pull(24, 1)
	wantFile(t, filepath.Join(dir, "rank-0.log"), text)
}

func TestPullChoosesStreams(t *testing.T) {
	store, dir := &blobtest.Memory{}, t.TempDir()
	streams := []Stream{{0, "launcher-0"}, {0, "rank-0"}, {0, "rank-10"}, {1, "rank-0"}, {10, "rank-0"}}
	for i, s := range streams {
		putSpan(t, store, s, 0, i+1)
	}
	for _, foreign := range []string{"/logs/README", "/logs/0/rank-0/notes", "/logs/0/Rank-0/00000000000000000000", "/run.json", "/follow/rank-0"} {
		if err := blob.PutBytes(t.Context(), store, testRun+foreign, []byte("?"), blob.Replace); err != nil {
			t.Fatal(err)
		}
	}
	have, err := List(t.Context(), store, testRun)
	if err != nil || len(have) != len(streams) {
		t.Fatalf("List = %v, %v", have, err)
	}
	for i, h := range have {
		if h.Stream != streams[i] || h.Length != int64(i+1) {
			t.Errorf("List[%d] = %v, want %v of %d bytes", i, h, streams[i], i+1)
		}
	}
	pulled, err := Pull(t.Context(), store, testRun, dir, func(s Stream) bool { return s.Name == "rank-0" })
	if err != nil || len(pulled) != 3 {
		t.Fatalf("Pull = %v, %v, want three streams", pulled, err)
	}
	wantFile(t, filepath.Join(dir, "rank-0.log"), text[:2])
	wantFile(t, filepath.Join(dir, "restart-1", "rank-0.log"), text[:4])
	wantFile(t, filepath.Join(dir, "restart-10", "rank-0.log"), text[:5])
	if _, err := os.Stat(filepath.Join(dir, "rank-10.log")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a stream that nobody wanted was pulled: %v", err)
	}
}

func TestPullKeepsWhatItGot(t *testing.T) {
	memory, dir := &blobtest.Memory{}, t.TempDir()
	bad := Stream{0, "rank-1"}
	putSpan(t, memory, rank0, 0, 10)
	putSpan(t, memory, bad, 0, 10)
	first := make(chan struct{})
	store := &blobtest.Faults{Store: memory, Before: func(op blobtest.Op, key string) error {
		if op == blobtest.Get && strings.Contains(key, bad.Name) {
			<-first // until the other one has been read
			return errOffline
		}
		return nil
	}, After: func(op blobtest.Op, _ string) error {
		if op == blobtest.Get {
			close(first)
		}
		return nil
	}}
	if _, err := Pull(t.Context(), store, testRun, dir, nil); !errors.Is(err, errOffline) {
		t.Errorf("Pull: %v, want the failure", err)
	}
	wantFile(t, filepath.Join(dir, "rank-0.log"), text[:10])
	if pulled, err := Pull(t.Context(), memory, testRun, dir, nil); err != nil || len(pulled) != 2 || pulled[0].New != 0 || pulled[1].New != 10 {
		t.Errorf("the next Pull = %+v, %v", pulled, err)
	}
}

func TestPullsAtOnce(t *testing.T) {
	store, dir := &blobtest.Memory{}, t.TempDir()
	for i := range len(text) {
		putSpan(t, store, rank0, i, i+1)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := Pull(t.Context(), store, testRun, dir, nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	wantFile(t, filepath.Join(dir, "rank-0.log"), text)
}

func TestPullOfAbsentRun(t *testing.T) {
	pulled, err := Pull(t.Context(), &blobtest.Memory{}, testRun, t.TempDir(), nil)
	if err != nil || len(pulled) != 0 {
		t.Errorf("Pull = %v, %v, want nothing", pulled, err)
	}
}

// A segment behind the listing's start must not hide the byte that a reader needs.
func TestListStreamFromAnOffset(t *testing.T) {
	store := &blobtest.Memory{}
	for start := int64(0); start < 6*maxSegment; start += maxSegment / 2 {
		if err := blob.PutBytes(t.Context(), store, segmentKey(testRun, rank0, start), make([]byte, maxSegment), blob.Replace); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range []int64{0, 1, maxSegment, maxSegment + 1, 3*maxSegment - 1, 3 * maxSegment, 3*maxSegment + 1, 6 * maxSegment} {
		segments, err := listStream(t.Context(), store, testRun, rank0, from)
		if err != nil {
			t.Fatal(err)
		}
		covered := slices.ContainsFunc(segments, func(s segment) bool { return s.start <= from && from < s.end })
		if !covered {
			t.Errorf("no segment listed from %d on has that byte", from)
		}
		if from > 3*maxSegment && segments[0].end <= from-maxSegment {
			t.Errorf("the listing from %d begins at %d", from, segments[0].start)
		}
	}
}

package logsync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"qj/blob"
	"qj/blob/blobtest"
)

// watcher is a running Follow.
type watcher struct {
	bytes.Buffer
	final atomic.Int64 // -2 = has not ended
	done  chan struct{}
	at    int64
	err   error
}

func watching(ctx context.Context, store blob.Store, from int64, opts FollowOptions) *watcher {
	w := &watcher{done: make(chan struct{})}
	w.final.Store(-2)
	opts.Ended = func() (int64, bool) { n := w.final.Load(); return n, n != -2 }
	go func() {
		defer close(w.done)
		w.at, w.err = Follow(ctx, store, testRun, rank0, from, &w.Buffer, opts)
	}()
	return w
}

func TestFollowWritesWhatArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &blobtest.Memory{}
		w := watching(t.Context(), store, 3, FollowOptions{Poll: 2 * time.Second})
		for _, end := range []int{5, 10, 11, 30} {
			putSpan(t, store, rank0, 0, end)
			time.Sleep(2 * time.Second)
			if synctest.Wait(); w.String() != text[3:end] {
				t.Errorf("a poll later %q is written, want %q", w.String(), text[3:end])
			}
		}
		w.final.Store(36)
		time.Sleep(10 * time.Second)
		select {
		case <-w.done:
			t.Error("it ended before all was written")
		default:
		}
		putSpan(t, store, rank0, 30, 36)
		if <-w.done; w.at != 36 || w.err != nil || w.String() != text[3:] {
			t.Errorf("Follow = %d, %v, wrote %q", w.at, w.err, w.String())
		}
	})
}

func TestFollowKeepsItsMarkerYoung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &blobtest.Memory{}
		w := watching(t.Context(), store, 0, FollowOptions{})
		for range 100 {
			time.Sleep(7 * time.Second)
			info, err := store.Stat(t.Context(), testRun+"/follow/rank-0")
			if err != nil {
				t.Fatal(err)
			}
			if age := time.Since(info.Modified); age > markerLife/2+time.Second {
				t.Fatalf("the marker is %v old", age)
			}
		}
		if puts, _ := store.Count(); puts > 25 {
			t.Errorf("%d markers in 700 s", puts)
		}
		w.final.Store(0)
		<-w.done
	})
}

func TestFollowEnds(t *testing.T) {
	denied := func(blobtest.Op, string) error { return fs.ErrPermission }
	broken := func(op blobtest.Op, _ string) error {
		if op == blobtest.List {
			return errOffline
		}
		return nil
	}
	tests := []struct {
		name   string
		before func(blobtest.Op, string) error
		final  int64
		at     int64
		says   string // the error; "" for none
	}{
		{name: "all written", final: 10, at: 10},
		{name: "length unknown", final: -1, at: 10},
		{name: "bytes never come", final: 20, at: 10, says: "only 10 of its 20 bytes"},
		{name: "access denied", before: denied, final: -2, says: "permission denied"},
		{name: "store gone after the end", before: broken, final: 10, says: errOffline.Error()},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := &blobtest.Memory{}
				putSpan(t, memory, rank0, 0, 10)
				w := watching(t.Context(), &blobtest.Faults{Store: memory, Before: test.before}, 0, FollowOptions{})
				w.final.Store(test.final)
				<-w.done
				if got := fmt.Sprint(w.err); w.at != test.at || (w.err != nil) != (test.says != "") || !strings.Contains(got, test.says) {
					t.Errorf("Follow = %d, %v, want %d and %q", w.at, w.err, test.at, test.says)
				}
			})
		})
	}
}

func TestFollowSurvivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &blobtest.Memory{}
		putSpan(t, memory, rank0, 0, 10)
		healthy := time.Now().Add(5 * time.Minute)
		var heard []error
		w := watching(t.Context(), &blobtest.Faults{Store: memory, Before: func(blobtest.Op, string) error {
			if time.Now().Before(healthy) {
				return errOffline
			}
			return nil
		}}, 0, FollowOptions{Notify: func(err error) { heard = append(heard, err) }})
		time.Sleep(6 * time.Minute)
		w.final.Store(10)
		<-w.done
		if w.err != nil || w.String() != text[:10] {
			t.Errorf("Follow: %v, wrote %q", w.err, w.String())
		}
		if n := len(heard); n < 8 || n > 30 || heard[n-1] != nil || !errors.Is(heard[n-2], errOffline) {
			t.Errorf("Notify heard %v", heard)
		}
	})
}

func TestFollowEndsWithItsWriter(t *testing.T) {
	store := &blobtest.Memory{}
	putSpan(t, store, rank0, 0, 10)
	r, w := io.Pipe()
	r.Close()
	if at, err := Follow(t.Context(), store, testRun, rank0, 0, w, FollowOptions{}); at != 0 || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Follow = %d, %v, want the writer's error", at, err)
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		at, err := Follow(ctx, &blobtest.Memory{}, testRun, rank0, 0, io.Discard, FollowOptions{})
		if at != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Follow = %d, %v, want the end of the context", at, err)
		}
	})
}

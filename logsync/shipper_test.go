package logsync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"qj/blob"
	"qj/blob/blobtest"
)

var (
	rank0      = Stream{0, "rank-0"}
	errOffline = errors.New("503 server busy")
)

// growing is a file that grows, and what its shipper is told of it.
type growing struct {
	t     *testing.T
	file  *os.File
	size  int64
	grown chan struct{}
	ended chan struct{}
}

func grow(t *testing.T) *growing {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "rank-0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &growing{t: t, file: f, grown: make(chan struct{}, 1), ended: make(chan struct{})}
}

func (g *growing) write(p []byte) {
	g.t.Helper()
	if _, err := g.file.Write(p); err != nil {
		g.t.Fatal(err)
	}
	g.size += int64(len(p))
	select {
	case g.grown <- struct{}{}:
	default:
	}
}

// ship runs a shipper until stop is called, which returns what Run did.
func (g *growing) ship(ctx context.Context, s *Shipper) (stop func() (int64, error)) {
	s.Folder, s.Stream, s.Path = testRun, rank0, g.file.Name()
	type result struct {
		stored int64
		err    error
	}
	done := make(chan result, 1)
	go func() {
		stored, err := s.Run(ctx, g.grown, g.ended)
		done <- result{stored, err}
	}()
	return func() (int64, error) {
		r := <-done
		return r.stored, r.err
	}
}

func (g *growing) finish(stop func() (int64, error)) {
	g.t.Helper()
	close(g.ended)
	if stored, err := stop(); stored != g.size || err != nil {
		g.t.Errorf("Run = %d, %v, want %d bytes", stored, err, g.size)
	}
}

func (g *growing) wantPulled(store blob.Store) {
	g.t.Helper()
	if got := g.pull(store, g.t.TempDir()); got != g.size {
		g.t.Errorf("pulled %d bytes, want the %d of the file", got, g.size)
	}
}

// pull pulls to a folder that earlier pulls may have written to, and returns how long the copy is.
func (g *growing) pull(store blob.Store, dir string) (length int64) {
	g.t.Helper()
	if _, err := Pull(g.t.Context(), store, testRun, dir, nil); err != nil {
		g.t.Fatal(err)
	}
	f, err := os.Open(rank0.LocalPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return 0 // nothing stored so far
	}
	if err != nil {
		g.t.Fatal(err)
	}
	defer f.Close()
	return g.wantBeginning(f)
}

// wantBeginning checks that a copy holds what the file begins with, and returns how long the copy is. It
// compares piece by piece: large buffers are slow under the race detector.
func (g *growing) wantBeginning(copied io.Reader) (length int64) {
	g.t.Helper()
	got, want := make([]byte, 16<<10), make([]byte, 16<<10)
	for {
		n, err := io.ReadFull(copied, got)
		if m, _ := g.file.ReadAt(want[:n], length); !bytes.Equal(got[:n], want[:m]) {
			g.t.Fatalf("the copy is not what the file holds at %d", length)
		}
		length += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return length
		}
		if err != nil {
			g.t.Fatal(err)
		}
	}
}

func stored(t *testing.T, store blob.Store) int64 {
	t.Helper()
	segments, err := listStream(t.Context(), store, testRun, rank0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return contiguous(segments)
}

func eager() bool { return true }

func TestShipperSendsEverything(t *testing.T) {
	for _, size := range []int{0, 1, lazyBytes, fullAt, maxSegment - 1, maxSegment, maxSegment + 1, 5*maxSegment + 7} {
		synctest.Test(t, func(t *testing.T) {
			store, g := &blobtest.Memory{}, grow(t)
			text := bytes.Repeat([]byte("0123456789\n"), size/11+1)[:size]
			stop := g.ship(t.Context(), &Shipper{Store: store})
			g.write(text[:size/3])
			synctest.Wait()
			g.write(text[size/3:])
			g.finish(stop)
			g.wantPulled(store)
			segments, err := listStream(t.Context(), store, testRun, rank0, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range segments {
				if s.end-s.start > maxSegment || s.end == s.start {
					t.Errorf("segment %s has %d bytes", s.key, s.end-s.start)
				}
			}
		})
	}
}

func TestShipperFreshness(t *testing.T) {
	marker := func(store blob.Store) error {
		return blob.PutBytes(context.Background(), store, followKey(testRun, rank0), nil, blob.Replace)
	}
	tests := []struct {
		name    string
		eager   func() bool
		before  func(blob.Store) error
		bytes   int
		soonest time.Duration
		latest  time.Duration
	}{
		{name: "eager", eager: eager, bytes: 10, soonest: time.Second, latest: time.Second},
		{name: "lazy", bytes: 10, soonest: 30 * time.Second, latest: 30 * time.Second},
		{name: "lazy, much", bytes: lazyBytes, soonest: 0, latest: 0},
		{name: "followed", before: marker, bytes: 10, soonest: time.Second, latest: time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, g := &blobtest.Memory{}, grow(t)
				if test.before != nil {
					if err := test.before(store); err != nil {
						t.Fatal(err)
					}
				}
				stop := g.ship(t.Context(), &Shipper{Store: store, Eager: test.eager})
				for range 3 {
					g.write(make([]byte, test.bytes))
					if test.soonest > 0 {
						time.Sleep(test.soonest - time.Millisecond)
						if synctest.Wait(); stored(t, store) == g.size {
							t.Errorf("stored before %v", test.soonest)
						}
						time.Sleep(test.latest - test.soonest + time.Millisecond)
					}
					if synctest.Wait(); stored(t, store) != g.size {
						t.Errorf("%d of %d bytes are stored after %v", stored(t, store), g.size, test.latest)
					}
				}
				g.finish(stop)
			})
		})
	}
}

// The first rank that fails becomes eager without a word in its log.
func TestShipperBecomesEager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, g := &blobtest.Memory{}, grow(t)
		var failed atomic.Bool
		stop := g.ship(t.Context(), &Shipper{Store: store, Eager: failed.Load})
		g.write([]byte("Traceback\n"))
		time.Sleep(5 * time.Second)
		if synctest.Wait(); stored(t, store) != 0 {
			t.Error("stored before the rank failed")
		}
		failed.Store(true)
		time.Sleep(freshAfter)
		if synctest.Wait(); stored(t, store) != g.size {
			t.Error("not stored a second after the rank failed")
		}
		g.finish(stop)
	})
}

func TestMarkerWorksWhileItIsYoung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The store's clock is an hour off: only changes of a marker's time may count.
		store, g := &blobtest.Memory{Now: func() time.Time { return time.Now().Add(-time.Hour) }}, grow(t)
		stop := g.ship(t.Context(), &Shipper{Store: store})
		g.write([]byte("waits for a follower\n"))
		time.Sleep(10 * time.Second)
		if err := blob.PutBytes(t.Context(), store, followKey(testRun, rank0), nil, blob.Replace); err != nil {
			t.Fatal(err)
		}
		time.Sleep(markerCheck)
		if synctest.Wait(); stored(t, store) != g.size {
			t.Error("a new marker was not seen within its check")
		}
		time.Sleep(markerLife)
		g.write([]byte("the marker is old now\n"))
		time.Sleep(lazyAfter - time.Second)
		if synctest.Wait(); stored(t, store) == g.size {
			t.Error("an old marker still works")
		}
		g.finish(stop)
	})
}

// TestShipperCost checks the arithmetic of budget.go on steady output.
func TestShipperCost(t *testing.T) {
	tests := []struct {
		bytes   int
		every   time.Duration
		long    time.Duration
		late    time.Duration // the most that the store may be behind
		objects int           // at most
	}{
		{100, time.Second, 24 * time.Hour, 11 * time.Second, 1250},
		{100, 10 * time.Second, 48 * time.Hour, 20 * time.Second, 2500},
		{100, time.Minute, 7 * 24 * time.Hour, 70 * time.Second, 1500},
		{5000, time.Second, time.Hour, 11 * time.Second, 55},
		{100_000, 100 * time.Millisecond, 30 * time.Second, 2 * time.Second, 40},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%dBEvery%v", test.bytes, test.every), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, g := &blobtest.Memory{}, grow(t)
				var mu sync.Mutex
				reached, objects := int64(0), map[string]bool{}
				watched := &blobtest.Faults{Store: store, After: func(op blobtest.Op, key string) error {
					if _, offset, ok := parseSegmentKey(testRun, key); ok && op == blobtest.Put {
						info, err := store.Stat(context.Background(), key)
						mu.Lock()
						defer mu.Unlock()
						reached, objects[key] = max(reached, offset+info.Size), true
						return err
					}
					return nil
				}}
				stop := g.ship(t.Context(), &Shipper{Store: watched, Eager: eager})
				line := bytes.Repeat([]byte("x"), test.bytes)
				begin := time.Now()
				for time.Since(begin) < test.long {
					g.write(line)
					time.Sleep(test.every)
					synctest.Wait()
					mu.Lock()
					behind := time.Duration((g.size-reached)/int64(test.bytes)) * test.every
					mu.Unlock()
					short := g.size < creditPut && time.Since(begin) < 2*time.Minute
					if behind > test.late || short && behind > 2*max(time.Second, test.every) {
						t.Fatalf("after %v the store is %v behind", time.Since(begin), behind)
					}
				}
				g.finish(stop)
				puts, put := store.Count()
				t.Logf("%d bytes: %d put (%.1fx) in %d puts, %d objects", g.size, put, float64(put)/float64(g.size), puts, len(objects))
				if put > overhead*g.size+credit {
					t.Errorf("%d bytes were put for a log of %d", put, g.size)
				}
				if len(objects) > test.objects {
					t.Errorf("%d objects, want at most %d", len(objects), test.objects)
				}
				g.wantPulled(store)
			})
		})
	}
}

func TestShipperSurvivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, g := &blobtest.Memory{}, grow(t)
		healthy := time.Now().Add(10 * time.Minute)
		failed := 0
		faulty := &blobtest.Faults{Store: store, Before: func(blobtest.Op, string) error {
			if time.Now().Before(healthy) {
				failed++
				return errOffline
			}
			return nil
		}}
		var heard []error
		stop := g.ship(t.Context(), &Shipper{Store: faulty, Eager: eager, Notify: func(err error) { heard = append(heard, err) }})
		for range 100 {
			g.write([]byte(strings.Repeat("line\n", 1000)))
			time.Sleep(7 * time.Second)
		}
		g.finish(stop)
		g.wantPulled(store)
		if failed < 20 || failed > 60 {
			t.Errorf("%d requests in ten minutes of outage, want a back-off up to 30 s", failed)
		}
		last := len(heard) - 1
		if last != failed || heard[last] != nil || !errors.Is(heard[last-1], errOffline) {
			t.Errorf("Notify heard %d times, last %v, want %d failures and then nil", len(heard), heard[last], failed)
		}
	})
}

func TestShipperEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grow(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		denied := &blobtest.Faults{Store: &blobtest.Memory{}, Before: func(blobtest.Op, string) error { return fs.ErrPermission }}
		stop := g.ship(ctx, &Shipper{Store: denied})
		g.write([]byte("never arrives"))
		close(g.ended)
		if n, err := stop(); n != 0 || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("Run = %d, %v, want the end of the context and why nothing was stored", n, err)
		}
	})
}

// A put-if-absent that was killed half-way can leave an empty object where links are unknown.
func TestShipperReplacesAnEmptySegment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, g := &blobtest.Memory{}, grow(t)
		if err := blob.PutBytes(t.Context(), store, segmentKey(testRun, rank0, 0), nil, blob.Replace); err != nil {
			t.Fatal(err)
		}
		stop := g.ship(t.Context(), &Shipper{Store: store})
		g.write([]byte("text\n"))
		g.finish(stop)
		g.wantPulled(store)
	})
}

func TestShipperDoesNotSendAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, g := &blobtest.Memory{}, grow(t)
		ctx, kill := context.WithCancel(t.Context())
		stop := g.ship(ctx, &Shipper{Store: store})
		g.write(make([]byte, 3*maxSegment))
		synctest.Wait()
		kill()
		stop()
		_, before := store.Count()
		stop = g.ship(t.Context(), &Shipper{Store: store})
		g.write([]byte("and a little more"))
		g.finish(stop)
		if _, after := store.Count(); after-before != int64(len("and a little more")) {
			t.Errorf("the second shipper put %d bytes", after-before)
		}
		g.wantPulled(store)
	})
}

package logsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"qj/blob"
	"qj/blob/blobtest"
)

// chaos is a store at its worst: puts are slow, get lost, lose their answers, and arrive long after the
// sender gave up, even after it was killed.
type chaos struct {
	*blobtest.Memory
	random func(n int) int
	calm   atomic.Bool
	late   sync.WaitGroup
}

func (c *chaos) Put(ctx context.Context, key string, body io.ReadSeeker, mode blob.Mode) error {
	if c.calm.Load() {
		return c.Memory.Put(ctx, key, body, mode)
	}
	content := make([]byte, body.(interface{ Size() int64 }).Size())
	if _, err := io.ReadFull(body, content); err != nil { // what was sent is sent, whatever becomes of the sender
		return err
	}
	carryOut := func() error {
		return blob.PutBytes(context.WithoutCancel(ctx), c.Memory, key, content, mode)
	}
	delay := time.Duration(c.random(3000)) * time.Millisecond
	switch c.random(6) {
	case 0:
		return errOffline
	case 1:
		if err := carryOut(); err != nil {
			return err
		}
		return errOffline
	case 2: // arrives late, perhaps between later puts
		c.late.Go(func() { time.Sleep(20 * delay); carryOut() })
		return errOffline
	case 3: // slow; the sender may be killed meanwhile and it arrives all the same
		answer := make(chan error, 1)
		c.late.Go(func() { time.Sleep(delay); answer <- carryOut() })
		select {
		case err := <-answer:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	default:
		return carryOut()
	}
}

// TestAnyInterleaving grows a file, kills and restarts its shipper, pulls and follows, in random order
// over a chaotic store. Every copy must always be the beginning of the file, and in the end all of it.
func TestAnyInterleaving(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				interleave(t, rand.New(rand.NewPCG(seed, 0)), rand.NewChaCha8([32]byte{byte(seed)}))
			})
		})
	}
}

func interleave(t *testing.T, random *rand.Rand, content io.Reader) {
	var mu sync.Mutex
	draw := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	store, g, home := &chaos{Memory: &blobtest.Memory{}, random: draw}, grow(t), t.TempDir()
	isEager := draw(2) == 0
	begin := func() (stop func() (int64, error), kill func()) {
		ctx, cancel := context.WithCancel(t.Context())
		return g.ship(ctx, &Shipper{Store: store, Eager: func() bool { return isEager }}), cancel
	}
	stop, kill := begin()

	var final atomic.Int64
	final.Store(-1)
	followed, err := os.Create(filepath.Join(home, "followed"))
	if err != nil {
		t.Fatal(err)
	}
	defer followed.Close()
	following := make(chan error, 1)
	go func() {
		_, err := Follow(t.Context(), store, testRun, rank0, 0, followed, FollowOptions{
			Poll:  time.Duration(1+draw(20)) * time.Second,
			Ended: func() (int64, bool) { n := final.Load(); return n, n >= 0 },
		})
		following <- err
	}()

	for range 40 {
		switch draw(5) {
		case 0, 1:
			p := make([]byte, 1+draw(1<<(4+draw(16))))
			content.Read(p)
			g.write(p)
		case 2:
			time.Sleep(time.Duration(draw(40_000)) * time.Millisecond)
		case 3:
			kill()
			if _, err := stop(); !errors.Is(err, context.Canceled) {
				t.Fatalf("a killed shipper returned %v", err)
			}
			stop, kill = begin()
		case 4:
			g.pull(store, home)
		}
	}
	store.calm.Store(draw(2) == 0)
	g.finish(stop)
	kill()
	final.Store(g.size)
	if err := <-following; err != nil {
		t.Error(err)
	}
	store.late.Wait()
	g.wantPulled(store)
	if n := g.pull(store, home); n != g.size {
		t.Errorf("pulled %d bytes bit by bit, want the %d of the file", n, g.size)
	}
	if n := g.wantBeginning(io.NewSectionReader(followed, 0, math.MaxInt64)); n != g.size {
		t.Errorf("followed %d bytes, want the %d of the file", n, g.size)
	}
}

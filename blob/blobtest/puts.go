package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"qj/blob"
)

func ifAbsent(t *testing.T, s blob.Store) {
	ctx := t.Context()
	if err := blob.PutBytes(ctx, s, "a/b", []byte("first"), blob.IfAbsent); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"second", "first", ""} {
		err := blob.PutBytes(ctx, s, "a/b", []byte(body), blob.IfAbsent)
		if !errors.Is(err, fs.ErrExist) {
			t.Errorf("put %q if absent: %v, want fs.ErrExist", body, err)
		} else if !strings.Contains(err.Error(), "a/b") {
			t.Errorf("error %q does not name a/b", err)
		}
	}
	wantBody(t, s, "a/b", "first")
	if err := s.Delete(ctx, "a/b"); err != nil {
		t.Fatal(err)
	}
	if err := blob.PutBytes(ctx, s, "a/b", nil, blob.IfAbsent); err != nil {
		t.Errorf("put if absent after a delete: %v", err)
	}
}

func ifAbsentRace(t *testing.T, s blob.Store) {
	const racers = 32
	body := func(i int) string { return fmt.Sprintf("racer %d", i) }
	errs := make([]error, racers)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range racers {
		group.Go(func() {
			<-start
			errs[i] = blob.PutBytes(t.Context(), s, "rev/00000001.json", []byte(body(i)), blob.IfAbsent)
		})
	}
	close(start)
	group.Wait()
	var winners []int
	for i, err := range errs {
		if err == nil {
			winners = append(winners, i)
		} else if !errors.Is(err, fs.ErrExist) {
			t.Errorf("racer %d: %v, want fs.ErrExist", i, err)
		}
	}
	if len(winners) != 1 {
		t.Fatalf("racers %v won, want exactly one", winners)
	}
	wantBody(t, s, "rev/00000001.json", body(winners[0]))
}

// interrupted puts a body whose fourth read calls stop, over an object and over none, and checks that
// neither key shows anything of it.
func interrupted(t *testing.T, s blob.Store, want error, begin func() (context.Context, func() error)) {
	put(t, s, "a/old", "old")
	for _, key := range []string{"a/old", "a/new"} {
		ctx, stop := begin()
		reads := 0
		body := hookedBody{bytes.NewReader(make([]byte, 1<<20)), func() error {
			if reads++; reads > 3 {
				return stop()
			}
			return nil
		}}
		mode := blob.Replace
		if key == "a/new" {
			mode = blob.IfAbsent
		}
		if err := s.Put(ctx, key, body, mode); !errors.Is(err, want) {
			t.Errorf("put %s: %v, want %v", key, err, want)
		}
	}
	wantBody(t, s, "a/old", "old")
	wantMissing(t, s, "a/new")
	for info, err := range s.List(t.Context(), "", "") {
		if err != nil || info.Key != "a/old" {
			t.Errorf("list shows %v, %v", info, err)
		}
	}
	put(t, s, "a/new", "a later put")
	wantBody(t, s, "a/new", "a later put")
}

func cancelledPut(t *testing.T, s blob.Store) {
	interrupted(t, s, context.Canceled, func() (context.Context, func() error) {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		return ctx, func() error { cancel(); return nil }
	})
}

func failingBody(t *testing.T, s blob.Store) {
	broken := errors.New("the disk under the body broke")
	interrupted(t, s, broken, func() (context.Context, func() error) {
		return t.Context(), func() error { return broken }
	})
}

// replacedWhole reads an object over and over while it is replaced by ones of other lengths.
func replacedWhole(t *testing.T, s blob.Store) {
	var versions []string
	for i := range 7 {
		versions = append(versions, strings.Repeat(string(rune('a'+i)), 50_000+i*i%7*30_000))
	}
	put(t, s, "a/b", versions[0])
	done := make(chan struct{})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				body, err := get(t.Context(), s, "a/b", 0, -1)
				if err != nil {
					t.Error(err)
					return
				}
				if !slices.Contains(versions, body) {
					t.Errorf("read %d bytes that no put wrote", len(body))
				}
			}
		})
	}
	for i := range 50 {
		put(t, s, "a/b", versions[i%len(versions)])
	}
	close(done)
	group.Wait()
}

// putDeleteRace deletes the only neighbour of what it puts, again and again.
func putDeleteRace(t *testing.T, s blob.Store) {
	const rounds = 100
	var group sync.WaitGroup
	for _, name := range []string{"x", "y"} {
		group.Go(func() {
			key := "runs/r/follow/" + name
			for range rounds {
				if err := blob.PutBytes(t.Context(), s, key, nil, blob.Replace); err != nil {
					t.Error(err)
				}
				if _, err := s.Stat(t.Context(), key); err != nil {
					t.Error(err)
				}
				if err := s.Delete(t.Context(), key); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

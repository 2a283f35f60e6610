package blob_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"qj/blob"
	"qj/blob/blobtest"
)

func TestLimitBoundsRequestsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, callers = 3, 20
		arrived, answer := make(chan struct{}, callers), make(chan struct{})
		store := blob.Limit(&blobtest.Faults{
			Store:  &blobtest.Memory{},
			Before: func(blobtest.Op, string) error { arrived <- struct{}{}; <-answer; return nil },
		}, n)
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				if err := blob.PutBytes(t.Context(), store, "a", nil, blob.Replace); err != nil {
					t.Error(err)
				}
			})
		}
		for answered := range callers {
			synctest.Wait()
			if inFlight, want := len(arrived)-answered, min(n, callers-answered); inFlight != want {
				t.Fatalf("%d requests are in flight after %d answers, want %d", inFlight, answered, want)
			}
			answer <- struct{}{}
		}
		group.Wait()
	})
}

func TestLimitHeldByReaders(t *testing.T) {
	tests := []struct {
		name  string
		use   func(r io.ReadCloser)
		holds bool
	}{
		{"unread", func(io.ReadCloser) {}, true},
		{"partly read", func(r io.ReadCloser) { io.CopyN(io.Discard, r, 2) }, true},
		{"read to its end", func(r io.ReadCloser) { io.Copy(io.Discard, r) }, false},
		{"closed", func(r io.ReadCloser) { r.Close() }, false},
		{"read, and closed twice", func(r io.ReadCloser) { io.Copy(io.Discard, r); r.Close(); r.Close() }, false},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			store := blob.Limit(&blobtest.Memory{}, 1)
			if err := blob.PutBytes(t.Context(), store, "a", []byte("body"), blob.Replace); err != nil {
				t.Fatal(err)
			}
			r, err := store.Get(t.Context(), "a", 0, -1)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			test.use(r)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends at once if everybody waits
			defer cancel()
			_, err = store.Stat(ctx, "a")
			if held := errors.Is(err, context.DeadlineExceeded); held != test.holds {
				t.Errorf("%s: the next request got %v, want it to wait: %v", test.name, err, test.holds)
			}
		})
	}
}

func TestLimitGivesPlacesBack(t *testing.T) {
	store := blob.Limit(&blobtest.Memory{}, 1)
	for range 3 {
		if _, err := store.Get(t.Context(), "missing", 0, -1); err == nil {
			t.Error("a missing object was read")
		}
		for range store.List(t.Context(), "", "") {
			break
		}
	}
	if err := blob.PutBytes(t.Context(), store, "a", nil, blob.Replace); err != nil {
		t.Error(err)
	}
}

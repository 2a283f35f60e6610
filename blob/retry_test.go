package blob_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"qj/blob"
	"qj/blob/blobtest"
)

var errFlaky = errors.New("503 server busy")

// failures is a hook of blobtest.Faults that fails the first n requests of one kind.
func failures(n int, op blobtest.Op, err error) func(blobtest.Op, string) error {
	return func(got blobtest.Op, _ string) error {
		if got == op && n > 0 {
			n--
			return err
		}
		return nil
	}
}

// policy waits long: to be used in a synctest bubble only.
func policy(tries int) blob.Policy {
	return blob.Policy{Tries: tries, First: time.Second, Max: 3 * time.Second}
}

// soon hardly waits.
func soon(tries int) blob.Policy {
	return blob.Policy{Tries: tries, First: time.Microsecond, Max: time.Microsecond}
}

func TestRetryIsBounded(t *testing.T) {
	tests := []struct {
		failures int
		want     error
		most     time.Duration // the waits without jitter: 1 s, 2 s, then Max
	}{{0, nil, 0}, {1, nil, 1}, {2, nil, 3}, {4, nil, 9}, {5, errFlaky, 9}}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			store := blob.Retry(&blobtest.Faults{
				Store: &blobtest.Memory{}, Before: failures(test.failures, blobtest.Put, errFlaky),
			}, policy(5))
			begin := time.Now()
			err := blob.PutBytes(t.Context(), store, "a", []byte("x"), blob.Replace)
			if !errors.Is(err, test.want) {
				t.Errorf("after %d failures: %v, want %v", test.failures, err, test.want)
			}
			most := test.most * time.Second
			if took := time.Since(begin); took < most/2 || took > most+time.Millisecond {
				t.Errorf("after %d failures: waited %v in all, want half of %v to all of it", test.failures, took, most)
			}
		})
	}
}

func TestRetryLeavesFinalErrors(t *testing.T) {
	for _, final := range []error{fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, errors.ErrUnsupported} {
		tries := 0
		store := blob.Retry(&blobtest.Faults{Store: &blobtest.Memory{}, Before: func(blobtest.Op, string) error {
			tries++
			return fmt.Errorf("stat a: %w", final)
		}}, policy(5))
		if _, err := store.Stat(t.Context(), "a"); !errors.Is(err, final) || tries != 1 {
			t.Errorf("%v after %d tries, want %v after 1", err, tries, final)
		}
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		tries := 0
		store := blob.Retry(&blobtest.Faults{Store: &blobtest.Memory{}, Before: func(blobtest.Op, string) error {
			tries++
			return errFlaky
		}}, policy(5))
		_, err := store.Stat(ctx, "a")
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errFlaky) || tries != 1 {
			t.Errorf("%v after %d tries, want both the failure and the end of the context after 1", err, tries)
		}
	})
}

// A request that timed out by itself looks like an ended context, and is worth repeating.
func TestRetryRepeatsTimedOutRequests(t *testing.T) {
	store := blob.Retry(&blobtest.Faults{
		Store: &blobtest.Memory{}, Before: failures(1, blobtest.Put, context.DeadlineExceeded),
	}, soon(2))
	if err := blob.PutBytes(t.Context(), store, "a", nil, blob.Replace); err != nil {
		t.Error(err)
	}
}

func TestRetrySettlesALostAnswer(t *testing.T) {
	long := strings.Repeat("0123456789", 20_000)
	tests := []struct {
		name          string
		there         *string // what somebody else put
		mine          string
		after, before int // lost answers; requests that never arrived
		gets          int // failing reads while settling
		want          error
	}{
		{name: "mine arrived", mine: "mine", after: 1},
		{name: "mine arrived, empty", mine: "", after: 1},
		{name: "mine arrived, long", mine: long, after: 1},
		{name: "mine arrived, reading back is flaky", mine: "mine", after: 1, gets: 1},
		{name: "somebody else's", there: new("other"), mine: "mine", before: 1, want: fs.ErrExist},
		{name: "somebody else's begins like mine", there: new("mine, and more"), mine: "mine", before: 1, want: fs.ErrExist},
		{name: "mine begins like somebody else's", there: new("mi"), mine: "mine", before: 1, want: fs.ErrExist},
		{name: "long, last byte differs", there: new(long + "x"), mine: long + "y", before: 1, want: fs.ErrExist},
		{name: "no doubt", there: new("mine"), mine: "mine", want: fs.ErrExist},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			memory := &blobtest.Memory{}
			if test.there != nil {
				if err := blob.PutBytes(t.Context(), memory, "a", []byte(*test.there), blob.Replace); err != nil {
					t.Fatal(err)
				}
			}
			notSent, notRead := failures(test.before, blobtest.Put, errFlaky), failures(test.gets, blobtest.Get, errFlaky)
			store := blob.Retry(&blobtest.Faults{
				Store:  memory,
				Before: func(op blobtest.Op, key string) error { return errors.Join(notSent(op, key), notRead(op, key)) },
				After:  failures(test.after, blobtest.Put, errFlaky),
			}, soon(4))
			err := blob.PutBytes(t.Context(), store, "a", []byte(test.mine), blob.IfAbsent)
			if !errors.Is(err, test.want) {
				t.Errorf("put = %v, want %v", err, test.want)
			}
		})
	}
}

// When the doubt cannot be settled, the answer must not be a plain fs.ErrExist: that would be a guess.
func TestRetryAdmitsDoubt(t *testing.T) {
	store := blob.Retry(&blobtest.Faults{
		Store: &blobtest.Memory{}, Before: failures(100, blobtest.Get, errFlaky), After: failures(1, blobtest.Put, errFlaky),
	}, soon(4))
	err := blob.PutBytes(t.Context(), store, "a", []byte("mine"), blob.IfAbsent)
	if !errors.Is(err, errFlaky) || errors.Is(err, fs.ErrExist) {
		t.Errorf("put = %v, want the failure to read back", err)
	}
}

// breaking yields one entry and then fails, each time it is asked, until n failures.
type breaking struct {
	blob.Store
	failures int
}

func (b *breaking) List(ctx context.Context, prefix, after string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		for info, err := range b.Store.List(ctx, prefix, after) {
			if !yield(info, err) {
				return
			}
			if b.failures--; b.failures >= 0 {
				yield(blob.Info{}, errFlaky)
				return
			}
		}
	}
}

func TestRetryTakesAListingUpAgain(t *testing.T) {
	memory := &blobtest.Memory{}
	want := []string{"a", "b", "c", "d", "e", "f"}
	for _, key := range want {
		if err := blob.PutBytes(t.Context(), memory, key, nil, blob.Replace); err != nil {
			t.Fatal(err)
		}
	}
	store := blob.Retry(&breaking{memory, 5}, soon(2))
	var got []string
	for info, err := range store.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, info.Key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("list = %q, want %q", got, want)
	}

	dead := blob.Retry(&blobtest.Faults{Store: memory, Before: failures(100, blobtest.List, errFlaky)}, soon(2))
	seen := 0
	for _, err := range dead.List(t.Context(), "", "") {
		seen++
		if !errors.Is(err, errFlaky) {
			t.Errorf("list of a dead store: %v, want the failure", err)
		}
	}
	if seen != 1 {
		t.Errorf("list of a dead store yielded %d times, want once", seen)
	}
}

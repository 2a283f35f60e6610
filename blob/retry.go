package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math/rand/v2"
	"time"
)

// Policy says how often and how patiently a failed request is repeated.
type Policy struct {
	Tries int           // in total, at least 1
	First time.Duration // the wait before the second try; it doubles from try to try
	Max   time.Duration // the longest wait
}

// Retry returns s with failed requests repeated as p says. What cannot get better is not repeated: a
// missing object, a lost put-if-absent, a denied permission, a key that is not valid, an ended context.
//
// A put-if-absent whose answer was lost may find its own object at the next try. So when an earlier try
// failed, fs.ErrExist is settled by reading the object: if it is byte for byte the body, the put
// succeeded. Two callers that put equal bodies can then both be told that they won; whoever must know the
// winner puts something unique in the body.
//
// A reader that breaks midway is not repeated: the object may have been replaced. A listing is taken up
// behind the last key that it yielded.
func Retry(s Store, p Policy) Store {
	return retrying{s, p}
}

type retrying struct {
	store  Store
	policy Policy
}

func (r retrying) Put(ctx context.Context, key string, body io.ReadSeeker, mode Mode) error {
	if err := ValidKey(key); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	inDoubt := false // some earlier try may have been carried out
	return r.do(ctx, func() error {
		err := r.store.Put(ctx, key, body, mode)
		if inDoubt && errors.Is(err, fs.ErrExist) {
			return r.settle(ctx, key, body, err)
		}
		inDoubt = err != nil
		return err
	})
}

func (r retrying) Get(ctx context.Context, key string, offset, length int64) (reader io.ReadCloser, err error) {
	if err := ValidKey(key); err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	err = r.do(ctx, func() (err error) {
		reader, err = r.store.Get(ctx, key, offset, length)
		return err
	})
	return reader, err
}

func (r retrying) Stat(ctx context.Context, key string) (info Info, err error) {
	if err := ValidKey(key); err != nil {
		return Info{}, fmt.Errorf("stat: %w", err)
	}
	err = r.do(ctx, func() (err error) {
		info, err = r.store.Stat(ctx, key)
		return err
	})
	return info, err
}

func (r retrying) List(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		after := after // every loop over the listing begins anew
		for {
			before := after
			err := r.do(ctx, func() error {
				for info, err := range r.store.List(ctx, prefix, after) {
					if err != nil {
						return err
					}
					after = info.Key
					if !yield(info, nil) {
						return nil
					}
				}
				return nil
			})
			if err == nil {
				return
			}
			if after == before || final(ctx, err) {
				yield(Info{}, err)
				return
			}
		}
	}
}

func (r retrying) Delete(ctx context.Context, key string) error {
	if err := ValidKey(key); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return r.do(ctx, func() error { return r.store.Delete(ctx, key) })
}

// do repeats a request until it succeeds, cannot get better, or was tried often enough.
func (r retrying) do(ctx context.Context, request func() error) error {
	wait := r.policy.First
	for try := 1; ; try++ {
		err := request()
		if err == nil || try >= r.policy.Tries || final(ctx, err) {
			return err
		}
		// Many nodes fail at the same moment; the random half keeps them from coming back together.
		if stop := sleep(ctx, wait/2+rand.N(wait/2+1)); stop != nil {
			return fmt.Errorf("%w (%w before the next try)", err, stop)
		}
		wait = min(2*wait, r.policy.Max)
	}
}

// final says whether no repetition can help. It asks the context and not the error whether time is up:
// a client's own time-out of one request is worth repeating, and looks the same.
func final(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) ||
		errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

package blob

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync"
)

// Limit returns s with at most n requests in flight, at least 1.
//
// A reader from Get holds its place until it has been read to its end or closed. So whoever holds n
// readers and makes another request waits until its context ends: read one object before asking for the
// next. A listing gives its place up while the loop over it runs, so the loop may make requests.
//
// Put Retry around Limit, not within it: then a request that waits to be repeated holds no place.
func Limit(s Store, n int) Store {
	return limited{s, make(chan struct{}, max(n, 1))}
}

type limited struct {
	store  Store
	places chan struct{}
}

func (l limited) acquire(ctx context.Context, verb, key string) error {
	err := ctx.Err()
	if err == nil {
		select {
		case l.places <- struct{}{}:
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return fmt.Errorf("%s %s: wait for one of %d requests in flight: %w", verb, key, cap(l.places), err)
}

func (l limited) release() { <-l.places }

func (l limited) Put(ctx context.Context, key string, body io.ReadSeeker, mode Mode) error {
	if err := l.acquire(ctx, "put", key); err != nil {
		return err
	}
	defer l.release()
	return l.store.Put(ctx, key, body, mode)
}

func (l limited) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if err := l.acquire(ctx, "get", key); err != nil {
		return nil, err
	}
	r, err := l.store.Get(ctx, key, offset, length)
	if err != nil {
		l.release()
		return nil, err
	}
	return &placed{r, sync.OnceFunc(l.release)}, nil
}

func (l limited) Stat(ctx context.Context, key string) (Info, error) {
	if err := l.acquire(ctx, "stat", key); err != nil {
		return Info{}, err
	}
	defer l.release()
	return l.store.Stat(ctx, key)
}

func (l limited) List(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := l.acquire(ctx, "list", prefix); err != nil {
			yield(Info{}, err)
			return
		}
		for info, err := range l.store.List(ctx, prefix, after) {
			l.release()
			if !yield(info, err) {
				return
			}
			if err := l.acquire(ctx, "list", prefix); err != nil {
				yield(Info{}, err)
				return
			}
		}
		l.release()
	}
}

func (l limited) Delete(ctx context.Context, key string) error {
	if err := l.acquire(ctx, "delete", key); err != nil {
		return err
	}
	defer l.release()
	return l.store.Delete(ctx, key)
}

// placed is a reader with a place among the requests in flight.
type placed struct {
	io.ReadCloser
	release func()
}

func (p *placed) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	if err != nil {
		p.release()
	}
	return n, err
}

func (p *placed) Close() error {
	defer p.release()
	return p.ReadCloser.Close()
}

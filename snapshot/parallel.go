package snapshot

import (
	"context"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
)

// parallel runs work(0) … work(n-1) on all processors and waits for them. The first error ends it.
func parallel(ctx context.Context, n int, work func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := work(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// inOrder computes n values on all processors and hands them to use one by one, in order. Few values
// exist at any time, for the workers do not run far ahead of use. The first error ends it; values that
// are then unused go to discard.
func inOrder[T any](ctx context.Context, n int, compute func(ctx context.Context, i int) (T, error), use func(T) error, discard func(T)) error {
	type result struct {
		value T
		err   error
	}
	type job struct {
		index int
		done  chan result // takes one value without waiting: a worker never blocks here
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workers := min(n, runtime.GOMAXPROCS(0))
	jobs := make(chan job)
	pending := make(chan job, workers)
	var group sync.WaitGroup
	group.Go(func() {
		defer close(jobs)
		defer close(pending)
		for i := 0; i < n && ctx.Err() == nil; i++ {
			j := job{i, make(chan result, 1)}
			jobs <- j
			pending <- j
		}
	})
	for range workers {
		group.Go(func() {
			for j := range jobs {
				value, err := compute(ctx, j.index)
				j.done <- result{value, err}
			}
		})
	}
	for j := range pending {
		r := <-j.done
		if r.err == nil && ctx.Err() == nil {
			r.err = use(r.value)
		} else {
			discard(r.value)
		}
		if r.err != nil {
			cancel(r.err)
		}
	}
	group.Wait()
	return context.Cause(ctx)
}

// cancelable makes reading a large file end when ctx does.
type cancelable struct {
	ctx context.Context
	r   io.Reader
}

func (c cancelable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

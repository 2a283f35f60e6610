package blobtest

import (
	"context"
	"io"
	"iter"

	"qj/blob"
)

// Op names a method of blob.Store.
type Op string

// The methods of blob.Store.
const (
	Put    Op = "put"
	Get    Op = "get"
	Stat   Op = "stat"
	List   Op = "list"
	Delete Op = "delete"
)

// Faults is a store that fails on purpose. An error from Before means that the request never arrived, one
// from After that it was carried out and its answer was lost. Either may be nil, and either may block.
// A listing is asked about once before it begins and once after its end, with its prefix for a key.
type Faults struct {
	blob.Store
	Before func(op Op, key string) error
	After  func(op Op, key string) error
}

// Put implements blob.Store.
func (f *Faults) Put(ctx context.Context, key string, body io.ReadSeeker, mode blob.Mode) error {
	return f.around(Put, key, func() error { return f.Store.Put(ctx, key, body, mode) })
}

// Get implements blob.Store.
func (f *Faults) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	var reader io.ReadCloser
	err := f.around(Get, key, func() (err error) {
		reader, err = f.Store.Get(ctx, key, offset, length)
		return err
	})
	if err != nil {
		if reader != nil {
			reader.Close()
		}
		return nil, err
	}
	return reader, nil
}

// Stat implements blob.Store.
func (f *Faults) Stat(ctx context.Context, key string) (info blob.Info, err error) {
	err = f.around(Stat, key, func() (err error) {
		info, err = f.Store.Stat(ctx, key)
		return err
	})
	return info, err
}

// List implements blob.Store.
func (f *Faults) List(ctx context.Context, prefix, after string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		stopped := false
		err := f.around(List, prefix, func() error {
			for info, err := range f.Store.List(ctx, prefix, after) {
				if stopped = !yield(info, err); stopped || err != nil {
					stopped = true
					break
				}
			}
			return nil
		})
		if err != nil && !stopped {
			yield(blob.Info{}, err)
		}
	}
}

// Delete implements blob.Store.
func (f *Faults) Delete(ctx context.Context, key string) error {
	return f.around(Delete, key, func() error { return f.Store.Delete(ctx, key) })
}

func (f *Faults) around(op Op, key string, request func() error) error {
	if f.Before != nil {
		if err := f.Before(op, key); err != nil {
			return err
		}
	}
	if err := request(); err != nil {
		return err
	}
	if f.After != nil {
		return f.After(op, key)
	}
	return nil
}

package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"qj/blob"
)

// Memory is a store for tests: quick, and it counts what a real one would bill.
type Memory struct {
	// Now stamps objects; nil means time.Now.
	Now func() time.Time

	mu       sync.Mutex
	objects  map[string]object
	puts     int
	putBytes int64
}

type object struct {
	body     []byte
	modified time.Time
}

// Count returns the successful puts so far and the bytes in them.
func (m *Memory) Count() (puts int, putBytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.puts, m.putBytes
}

// Put implements blob.Store.
func (m *Memory) Put(ctx context.Context, key string, body io.ReadSeeker, mode blob.Mode) error {
	if err := check(ctx, key); err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	size, err := body.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = body.Seek(0, io.SeekStart)
	}
	content := make([]byte, size)
	if err == nil {
		_, err = io.ReadFull(body, content)
	}
	if err = errors.Join(err, ctx.Err()); err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.objects[key]; ok && mode == blob.IfAbsent {
		return fmt.Errorf("put %s: %w", key, fs.ErrExist)
	}
	if m.objects == nil {
		m.objects = map[string]object{}
	}
	now := time.Now
	if m.Now != nil {
		now = m.Now
	}
	m.objects[key] = object{content, now()}
	m.puts++
	m.putBytes += int64(len(content))
	return nil
}

// Get implements blob.Store.
func (m *Memory) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	o, err := m.find(ctx, key)
	if err == nil && offset < 0 {
		err = fmt.Errorf("offset %d is negative", offset)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	body := o.body[min(offset, int64(len(o.body))):]
	if length >= 0 && length < int64(len(body)) {
		body = body[:length]
	}
	return io.NopCloser(bytes.NewReader(body)), nil
}

// Stat implements blob.Store.
func (m *Memory) Stat(ctx context.Context, key string) (blob.Info, error) {
	o, err := m.find(ctx, key)
	if err != nil {
		return blob.Info{}, fmt.Errorf("stat %s: %w", key, err)
	}
	return blob.Info{Key: key, Size: int64(len(o.body)), Modified: o.modified}, nil
}

// List implements blob.Store. It lists what was there when it began.
func (m *Memory) List(ctx context.Context, prefix, after string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		m.mu.Lock()
		objects := maps.Clone(m.objects)
		m.mu.Unlock()
		if err := ctx.Err(); err != nil {
			yield(blob.Info{}, fmt.Errorf("list %s: %w", prefix, err))
			return
		}
		for _, key := range slices.Sorted(maps.Keys(objects)) {
			if !strings.HasPrefix(key, prefix) || key <= after {
				continue
			}
			o := objects[key]
			if !yield(blob.Info{Key: key, Size: int64(len(o.body)), Modified: o.modified}, nil) {
				return
			}
		}
	}
}

// Delete implements blob.Store.
func (m *Memory) Delete(ctx context.Context, key string) error {
	if err := check(ctx, key); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
	return nil
}

func (m *Memory) find(ctx context.Context, key string) (object, error) {
	if err := check(ctx, key); err != nil {
		return object{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[key]
	if !ok {
		return object{}, fs.ErrNotExist
	}
	return o, nil
}

func check(ctx context.Context, key string) error {
	if err := blob.ValidKey(key); err != nil {
		return err
	}
	return ctx.Err()
}

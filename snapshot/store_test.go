package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"qj/blob"
)

// memory is a store for tests, which counts puts and can spoil reads.
type memory struct {
	mu      sync.Mutex
	objects map[string][]byte
	puts    []string
	onGet   func(key string, body io.Reader) io.Reader // may be nil
	onPut   func(key string, body io.Reader) error     // may be nil
}

func newMemory() *memory { return &memory{objects: map[string][]byte{}} }

func (m *memory) Put(_ context.Context, key string, body io.ReadSeeker, mode blob.Mode) error {
	if err := blob.ValidKey(key); err != nil {
		return err
	}
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if m.onPut != nil {
		if err := m.onPut(key, body); err != nil {
			return err
		}
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.objects[key]; ok && mode == blob.IfAbsent {
		return fmt.Errorf("put %s: %w", key, fs.ErrExist)
	}
	m.objects[key] = content
	m.puts = append(m.puts, key)
	return nil
}

func (m *memory) Get(_ context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	content, ok := m.objects[key]
	if !ok {
		return nil, fmt.Errorf("get %s: %w", key, fs.ErrNotExist)
	}
	content = content[min(offset, int64(len(content))):]
	if length >= 0 {
		content = content[:min(length, int64(len(content)))]
	}
	var body io.Reader = bytes.NewReader(content)
	if m.onGet != nil {
		body = m.onGet(key, body)
	}
	return io.NopCloser(body), nil
}

func (m *memory) Stat(_ context.Context, key string) (blob.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	content, ok := m.objects[key]
	if !ok {
		return blob.Info{}, fmt.Errorf("stat %s: %w", key, fs.ErrNotExist)
	}
	return blob.Info{Key: key, Size: int64(len(content))}, nil
}

func (m *memory) List(_ context.Context, prefix, after string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		for _, key := range m.keys(prefix) {
			if key > after && !yield(blob.Info{Key: key, Size: int64(len(m.objects[key]))}, nil) {
				return
			}
		}
	}
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
	return nil
}

func (m *memory) keys(prefix string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(func(yield func(string) bool) {
		for key := range maps.Keys(m.objects) {
			if strings.HasPrefix(key, prefix) && !yield(key) {
				return
			}
		}
	})
}

// layerKey returns the key of the only layer.
func (m *memory) layerKey() string {
	for _, key := range m.keys("code/") {
		if strings.HasSuffix(key, ".zip") {
			return key
		}
	}
	return ""
}

package snapshot

import (
	"context"
	"io"
	"strings"
	"testing"

	"qj/blob"
	"qj/blob/blobtest"
)

// memory is a store that can spoil what passes through it.
type memory struct {
	blobtest.Memory
	onGet func(key string, body io.Reader) io.Reader
	onPut func(key string, body io.Reader) error // before the put
}

func newMemory() *memory { return &memory{} }

func (m *memory) Put(ctx context.Context, key string, body io.ReadSeeker, mode blob.Mode) error {
	if m.onPut != nil {
		if _, err := body.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if err := m.onPut(key, body); err != nil {
			return err
		}
	}
	return m.Memory.Put(ctx, key, body, mode)
}

func (m *memory) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	body, err := m.Memory.Get(ctx, key, offset, length)
	if err != nil || m.onGet == nil {
		return body, err
	}
	return struct {
		io.Reader
		io.Closer
	}{m.onGet(key, body), body}, nil
}

// layer returns the key and content of the only layer, "" if there is none.
func (m *memory) layer(t *testing.T) (key string, content []byte) {
	t.Helper()
	for info, err := range m.List(t.Context(), "code/", "") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(info.Key, ".zip") {
			key = info.Key
		}
	}
	if key == "" {
		return "", nil
	}
	content, err := blob.ReadAll(t.Context(), m, key, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return key, content
}

// replace puts other content under a key, as an intruder or a bad disk does.
func (m *memory) replace(t *testing.T, key string, content []byte) {
	t.Helper()
	if err := blob.PutBytes(t.Context(), m, key, content, blob.Replace); err != nil {
		t.Fatal(err)
	}
}

package blob

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
)

// Prefix returns the part of s below the folder prefix ("a/b") as a store of its own. An empty prefix
// returns s. Keys must still fit in 1024 bytes with the prefix before them.
func Prefix(s Store, prefix string) Store {
	prefix = strings.Trim(prefix, "/")
	if prefix == "" {
		return s
	}
	return prefixed{s, prefix + "/"}
}

type prefixed struct {
	store  Store
	prefix string // ends in a slash
}

// key refuses what would be a valid key only together with the prefix, or lead out of it.
func (p prefixed) key(key string) (string, error) {
	if err := ValidKey(key); err != nil {
		return "", err
	}
	return p.prefix + key, nil
}

func (p prefixed) Put(ctx context.Context, key string, body io.ReadSeeker, mode Mode) error {
	whole, err := p.key(key)
	if err != nil {
		return fmt.Errorf("put: %w", err)
	}
	return p.store.Put(ctx, whole, body, mode)
}

func (p prefixed) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	whole, err := p.key(key)
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	return p.store.Get(ctx, whole, offset, length)
}

func (p prefixed) Stat(ctx context.Context, key string) (Info, error) {
	whole, err := p.key(key)
	if err != nil {
		return Info{}, fmt.Errorf("stat: %w", err)
	}
	info, err := p.store.Stat(ctx, whole)
	info.Key = key
	return info, err
}

func (p prefixed) List(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	if after != "" {
		after = p.prefix + after
	}
	return func(yield func(Info, error) bool) {
		for info, err := range p.store.List(ctx, p.prefix+prefix, after) {
			info.Key = strings.TrimPrefix(info.Key, p.prefix)
			if !yield(info, err) {
				return
			}
		}
	}
}

func (p prefixed) Delete(ctx context.Context, key string) error {
	whole, err := p.key(key)
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return p.store.Delete(ctx, whole)
}

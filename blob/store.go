// Package blob keeps objects under keys. It knows nothing of runs, code or logs, and asks little of a
// store, so that a folder, Azure and S3 can all be one: whole objects, ranged reads, listings in key
// order, and one condition, put-if-absent.
package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

// Store is a flat map from keys to immutable-at-a-glance objects: a reader sees an object whole, as some
// put left it, never half of one.
//
// Keys are as ValidKey says; any other one is refused. A caller never uses a key that is a folder of
// another (`a` and `a/b`): a store may be a file system. Errors wrap fs.ErrNotExist for a missing object
// and fs.ErrExist for a lost put-if-absent, and name the key. All methods may be called from several
// goroutines and processes.
type Store interface {
	// Put stores all of body, read from its start, under key. Until it returns nil, readers see what was
	// there before. With IfAbsent it fails with fs.ErrExist if the key is there, and of several such
	// puts at once exactly one succeeds. A cancelled put leaves the key as it was.
	Put(ctx context.Context, key string, body io.ReadSeeker, mode Mode) error

	// Get reads length bytes from offset on; a negative length means up to the end. A range that
	// reaches past the end yields what is there, possibly nothing. The caller closes the reader, and ends
	// ctx only after that. A reader whose object is replaced may fail, but never mixes the two.
	Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)

	// Stat describes one object.
	Stat(ctx context.Context, key string) (Info, error)

	// List yields the objects whose keys begin with prefix and sort after the key `after` ("" = all),
	// in byte order of the keys. A prefix need not end at a slash. The first error ends it. What is put
	// or deleted meanwhile may show or not. The loop over it may make other requests; another loop lists
	// anew.
	List(ctx context.Context, prefix, after string) iter.Seq2[Info, error]

	// Delete removes an object; a missing one is no error.
	Delete(ctx context.Context, key string) error
}

// Mode is the condition of a put.
type Mode int

// The modes of Put.
const (
	Replace Mode = iota
	IfAbsent
)

// Info describes an object.
type Info struct {
	Key      string
	Size     int64
	Modified time.Time
}

const maxKey = 1024

// ValidKey says whether key can be used in every store: 1 to 1024 bytes of slash-separated segments, none
// empty, none beginning with a dot, of letters, digits and `-_.=@+` only.
func ValidKey(key string) error {
	if len(key) == 0 || len(key) > maxKey {
		return fmt.Errorf("key %q: want 1 to %d bytes", key, maxKey)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment[0] == '.' || len(segment) > 255 {
			return fmt.Errorf("key %q: segment %q is not allowed", key, segment)
		}
	}
	for _, c := range []byte(key) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/-_.=@+", c) >= 0) {
			return fmt.Errorf("key %q: byte %q is not allowed", key, c)
		}
	}
	return nil
}

// PutBytes stores a small object.
func PutBytes(ctx context.Context, s Store, key string, body []byte, mode Mode) error {
	return s.Put(ctx, key, bytes.NewReader(body), mode)
}

// ErrTooLarge is returned by ReadAll for an object that exceeds its limit.
var ErrTooLarge = errors.New("object is too large")

// ReadAll reads a whole object of at most limit bytes.
func ReadAll(ctx context.Context, s Store, key string, limit int64) ([]byte, error) {
	r, err := s.Get(ctx, key, 0, limit+1)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("get %s: %w (limit %d bytes)", key, ErrTooLarge, limit)
	}
	return body, nil
}

package blob_test

import (
	"errors"
	"testing"
	"time"

	"qj/blob"
	"qj/blob/blobtest"
)

func TestWrappersKeepTheContract(t *testing.T) {
	policy := blob.Policy{Tries: 3, First: time.Microsecond, Max: time.Millisecond}
	wrappers := map[string]func(blob.Store) blob.Store{
		"Prefix": func(s blob.Store) blob.Store { return blob.Prefix(s, "a/b") },
		"Retry":  func(s blob.Store) blob.Store { return blob.Retry(s, policy) },
		"Limit":  func(s blob.Store) blob.Store { return blob.Limit(s, 1) },
		"All": func(s blob.Store) blob.Store {
			return blob.Prefix(blob.Retry(blob.Limit(s, 2), policy), "qj")
		},
	}
	for name, wrap := range wrappers {
		t.Run(name, func(t *testing.T) {
			blobtest.Run(t, func(*testing.T) blob.Store { return wrap(&blobtest.Memory{}) })
		})
	}
}

func TestPrefixShowsOnlyItsPart(t *testing.T) {
	ctx := t.Context()
	whole := &blobtest.Memory{}
	part := blob.Prefix(whole, "/a/b/")
	for _, key := range []string{"a/b/in", "a/bc", "a/c", "b"} {
		if err := blob.PutBytes(ctx, whole, key, nil, blob.Replace); err != nil {
			t.Fatal(err)
		}
	}
	var keys []string
	for info, err := range part.List(ctx, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	if len(keys) != 1 || keys[0] != "in" {
		t.Errorf("keys below the prefix = %q, want only \"in\"", keys)
	}
	if info, err := part.Stat(ctx, "in"); info.Key != "in" || err != nil {
		t.Errorf("stat = %v, %v", info, err)
	}
	if blob.Prefix(whole, "") != blob.Store(whole) {
		t.Error("an empty prefix wraps")
	}
}

func TestReadAllRefusesMoreThanItsLimit(t *testing.T) {
	ctx := t.Context()
	store := &blobtest.Memory{}
	if err := blob.PutBytes(ctx, store, "a", []byte("12345"), blob.Replace); err != nil {
		t.Fatal(err)
	}
	if body, err := blob.ReadAll(ctx, store, "a", 5); string(body) != "12345" || err != nil {
		t.Errorf("within the limit: %q, %v", body, err)
	}
	if _, err := blob.ReadAll(ctx, store, "a", 4); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
}

package blobtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"qj/blob"
)

func roundTrip(t *testing.T, s blob.Store) {
	large := strings.Repeat("0123456789abcdef", 5<<20/16)
	bodies := map[string]string{"empty": "", "large": large, "binary": "\x00\xff\r\n"}
	for _, key := range hardKeys {
		bodies[key] = "body of " + key
	}
	for key, body := range bodies {
		put(t, s, key, body)
	}
	for key, body := range bodies {
		wantBody(t, s, key, body)
		info, err := s.Stat(t.Context(), key)
		if err != nil {
			t.Error(err)
		} else if info.Key != key || info.Size != int64(len(body)) || info.Modified.IsZero() {
			t.Errorf("stat %s = %+v, want %d bytes and a time", key, info, len(body))
		}
	}
}

func ranges(t *testing.T, s blob.Store) {
	put(t, s, "a/digits", "0123456789")
	put(t, s, "a/empty", "")
	tests := []struct {
		key            string
		offset, length int64
		want           string
	}{
		{"a/digits", 0, -1, "0123456789"},
		{"a/digits", 0, 10, "0123456789"},
		{"a/digits", 0, 3, "012"},
		{"a/digits", 4, 3, "456"},
		{"a/digits", 4, -1, "456789"},
		{"a/digits", 4, 0, ""},
		{"a/digits", 7, 100, "789"},
		{"a/digits", 9, 1, "9"},
		{"a/digits", 10, 5, ""},
		{"a/digits", 10, -1, ""},
		{"a/digits", 11, 5, ""},
		{"a/digits", 1 << 40, -1, ""},
		{"a/digits", 3, 1<<63 - 1, "3456789"},
		{"a/empty", 0, -1, ""},
		{"a/empty", 0, 7, ""},
		{"a/empty", 3, 7, ""},
	}
	for _, test := range tests {
		got, err := get(t.Context(), s, test.key, test.offset, test.length)
		if err != nil || got != test.want {
			t.Errorf("get %s from %d, %d bytes = %q, %v, want %q", test.key, test.offset, test.length, got, err, test.want)
		}
	}
	if _, err := get(t.Context(), s, "a/digits", -1, 3); err == nil {
		t.Error("get from offset -1 succeeded")
	}
	if _, err := get(t.Context(), s, "a/none", 5, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("get of an empty range of a missing object: %v, want fs.ErrNotExist", err)
	}
}

func missing(t *testing.T, s blob.Store) {
	wantMissing(t, s, "none")
	put(t, s, "a/b/c", "x")
	for _, key := range []string{"a", "a/b", "a/b/d", "a/b/c/d", "a/b/cc"} {
		wantMissing(t, s, key)
		_, err := s.Stat(t.Context(), key)
		if err != nil && !strings.Contains(err.Error(), key) {
			t.Errorf("error %q does not name %s", err, key)
		}
	}
}

func invalidKeys(t *testing.T, s blob.Store) {
	ctx := t.Context()
	keys := []string{
		"", "/", "/a", "a/", "a//b", ".", "..", ".a", "a/.b", "a/./b", "a/../b", "../a",
		"a b", "a\\b", "a:b", "a*", "é", "a\x00b", "a\nb", "a%2fb",
		strings.Repeat("s", 256), strings.Repeat("k/", 512) + "k",
	}
	for _, key := range keys {
		if err := blob.PutBytes(ctx, s, key, []byte("x"), blob.Replace); err == nil {
			t.Errorf("put %q succeeded", key)
		}
		if err := blob.PutBytes(ctx, s, key, []byte("x"), blob.IfAbsent); err == nil || errors.Is(err, fs.ErrExist) {
			t.Errorf("put %q if absent: %v, want a refusal", key, err)
		}
		if _, err := get(ctx, s, key, 0, -1); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("get %q: %v, want a refusal", key, err)
		}
		if _, err := s.Stat(ctx, key); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("stat %q: %v, want a refusal", key, err)
		}
		if err := s.Delete(ctx, key); err == nil {
			t.Errorf("delete %q succeeded", key)
		}
	}
	for info, err := range s.List(ctx, "", "") {
		t.Errorf("the refused puts left %v, %v", info, err)
	}
}

// ended checks that no request begins once its context has ended.
func ended(t *testing.T, s blob.Store) {
	put(t, s, "a", "old")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, getErr := get(ctx, s, "a", 0, -1)
	_, statErr := s.Stat(ctx, "a")
	var listErr error
	for _, err := range s.List(ctx, "", "") {
		listErr = err
	}
	for verb, err := range map[string]error{
		"put": blob.PutBytes(ctx, s, "a", []byte("new"), blob.Replace), "put if absent": blob.PutBytes(ctx, s, "b", nil, blob.IfAbsent),
		"get": getErr, "stat": statErr, "list": listErr, "delete": s.Delete(ctx, "a"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s in an ended context: %v, want context.Canceled", verb, err)
		}
	}
	wantBody(t, s, "a", "old")
	wantMissing(t, s, "b")
}

func deletes(t *testing.T, s blob.Store) {
	ctx := t.Context()
	put(t, s, "a/b/c", "x")
	put(t, s, "a/b/d", "y")
	for _, key := range []string{"a/b/c", "a/b/c", "none", "a/none/c", "a", "a/b/d/e"} {
		if err := s.Delete(ctx, key); err != nil {
			t.Errorf("delete %s: %v", key, err)
		}
	}
	wantMissing(t, s, "a/b/c")
	wantBody(t, s, "a/b/d", "y")
	if err := s.Delete(ctx, "a/b/d"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "a", "a key again, now that nothing is below it")
	wantBody(t, s, "a", "a key again, now that nothing is below it")
}

func replaces(t *testing.T, s blob.Store) {
	for _, body := range []string{"first", "a longer second", "", "3"} {
		put(t, s, "a/b", body)
		wantBody(t, s, "a/b", body)
	}
}

func bodyFromStart(t *testing.T, s blob.Store) {
	body := bytes.NewReader([]byte("whole"))
	if _, err := body.Seek(3, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "a", body, blob.Replace); err != nil {
		t.Fatal(err)
	}
	wantBody(t, s, "a", "whole")
}

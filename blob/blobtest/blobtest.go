// Package blobtest holds every promise of blob.Store as a test, to be run on each store and on each
// wrapper around one, and two stores that other packages test with: Memory and Faults. It knows no store
// that a person would use.
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

// Run checks the whole contract. open returns an empty store, a new one each time; it may register its
// removal with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) blob.Store) {
	tests := []struct {
		name string
		run  func(t *testing.T, s blob.Store)
	}{
		{"RoundTrip", roundTrip},
		{"Ranges", ranges},
		{"Missing", missing},
		{"InvalidKeys", invalidKeys},
		{"Ended", ended},
		{"Delete", deletes},
		{"Replace", replaces},
		{"BodyFromStart", bodyFromStart},
		{"IfAbsent", ifAbsent},
		{"IfAbsentRace", ifAbsentRace},
		{"CancelledPut", cancelledPut},
		{"FailingBody", failingBody},
		{"ReplacedWhole", replacedWhole},
		{"PutDeleteRace", putDeleteRace},
		{"List", list},
		{"ListStops", listStops},
		{"ListTwice", listTwice},
		{"ListWhileUsed", listWhileUsed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// hardKeys are valid keys that a careless store gets wrong, in byte order: folders that begin alike
// ('-' and '.' sort before '/'), case, names that are awkward for a shell or in a URL, and long ones.
// Prefixed stores need room too, so none is quite as long as a key may be.
var hardKeys = []string{
	"+plus+/a+b",
	"-dash/-rf",
	"0",
	"00000000000000000001",
	"=x/a=b@c",
	"@at",
	"CASE/a",
	"_/_",
	"a-b/x",
	"a.b",
	"a/x",
	"a/x-y",
	"a/x.json",
	"a/xy/z",
	"case/A",
	"case/a",
	"deep" + strings.Repeat("/d", 200),
	"end.",
	strings.Repeat("l", 255),
	"long/" + strings.Repeat(strings.Repeat("s", 200)+"/", 3) + "s",
	"z",
}

func put(t *testing.T, s blob.Store, key, body string) {
	t.Helper()
	if err := blob.PutBytes(t.Context(), s, key, []byte(body), blob.Replace); err != nil {
		t.Fatal(err)
	}
}

func wantBody(t *testing.T, s blob.Store, key, want string) {
	t.Helper()
	if got, err := get(t.Context(), s, key, 0, -1); err != nil {
		t.Error(err)
	} else if got != want {
		t.Errorf("get %s = %s, want %s", key, brief(got), brief(want))
	}
}

func wantMissing(t *testing.T, s blob.Store, key string) {
	t.Helper()
	if body, err := get(t.Context(), s, key, 0, -1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("get %s = %s, %v, want fs.ErrNotExist", key, brief(body), err)
	}
	if info, err := s.Stat(t.Context(), key); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat %s = %v, %v, want fs.ErrNotExist", key, info, err)
	}
}

func get(ctx context.Context, s blob.Store, key string, offset, length int64) (string, error) {
	r, err := s.Get(ctx, key, offset, length)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(r)
	return string(body), errors.Join(err, r.Close())
}

func brief(s string) string {
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return `"` + s + `"`
}

// hookedBody calls hook before each read, which may fail the read.
type hookedBody struct {
	*bytes.Reader
	hook func() error
}

func (b hookedBody) Read(p []byte) (int, error) {
	if err := b.hook(); err != nil {
		return 0, err
	}
	return b.Reader.Read(p[:min(len(p), 4096)]) // so that every store needs several reads
}

// WriteTo hides that of bytes.Reader, which would step over the hook.
func (b hookedBody) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{b})
}

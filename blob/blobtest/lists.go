package blobtest

import (
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"qj/blob"
)

// list compares listings with what sorting and filtering all keys gives.
func list(t *testing.T, s blob.Store) {
	keys := slices.Clone(hardKeys)
	for _, run := range []string{"ann-1-0a", "ann-1-0a-b", "ann-10-0a", "bob-1-0a"} {
		for _, name := range []string{"run.json", "logs/0/rank-0/00", "logs/0/rank-0/11", "logs/0/rank-1/00", "nodes/0.json"} {
			keys = append(keys, "runs/"+run+"/"+name)
		}
	}
	for _, i := range rand.Perm(len(keys)) {
		put(t, s, keys[i], keys[i])
	}
	sort.Strings(keys)

	prefixes := []string{
		"", "runs", "runs/", "runs/ann-1", "runs/ann-1-0a/", "runs/ann-1-0a/logs/0/rank-", "runs/bob-1-0a/run.json",
		"a", "a/", "a/x", "a-", "case/", "none", "none/below", "a/x/below", "z/", "zz", "/", "a//", "../", ".", "runs/../a", "a b",
	}
	afters := []string{
		"", "0", "a", "a-b/x", "a-b/zzz", "a/", "a/x", "a/x-", "runs/ann-1-0a", "runs/ann-1-0a/logs/0/rank-0/00",
		"runs/ann-1-0a/zzz", "runs/zzz", "zzz",
	}
	for _, prefix := range prefixes {
		for _, after := range afters {
			var want []string
			for _, key := range keys {
				if strings.HasPrefix(key, prefix) && key > after {
					want = append(want, key)
				}
			}
			if got := listed(t, s, prefix, after); !slices.Equal(got, want) {
				t.Errorf("list %q after %q =\n%q, want\n%q", prefix, after, got, want)
			}
		}
	}
}

// listed returns the keys of a listing and checks the sizes, which are those of the keys, and the times.
func listed(t *testing.T, s blob.Store, prefix, after string) []string {
	t.Helper()
	var keys []string
	for info, err := range s.List(t.Context(), prefix, after) {
		if err != nil {
			t.Fatal(err)
		}
		if info.Size != int64(len(info.Key)) || info.Modified.IsZero() {
			t.Errorf("listed %+v, want %d bytes and a time", info, len(info.Key))
		}
		keys = append(keys, info.Key)
	}
	return keys
}

func listStops(t *testing.T, s blob.Store) {
	for _, key := range []string{"a/1", "a/2", "b/1", "c"} {
		put(t, s, key, key)
	}
	for stop := 1; stop <= 4; stop++ {
		seen := 0
		for _, err := range s.List(t.Context(), "", "") {
			if err != nil {
				t.Fatal(err)
			}
			if seen++; seen == stop {
				break
			}
		}
		if seen != stop {
			t.Errorf("a loop that breaks at %d saw %d", stop, seen)
		}
	}
}

// listTwice loops over one listing again: like any iterator of the standard library, it begins anew.
func listTwice(t *testing.T, s blob.Store) {
	for _, key := range []string{"a/1", "b/1", "b/2", "b/3"} {
		put(t, s, key, key)
	}
	listing := s.List(t.Context(), "b/", "b/1")
	for range 2 {
		var keys []string
		for info, err := range listing {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, info.Key)
		}
		if !slices.Equal(keys, []string{"b/2", "b/3"}) {
			t.Errorf("list = %q, want b/2 and b/3 each time", keys)
		}
	}
}

// listWhileUsed makes other requests from within the loop, and takes away what is yet to come.
func listWhileUsed(t *testing.T, s blob.Store) {
	for _, key := range []string{"a/1", "b/1", "c/1"} {
		put(t, s, key, key)
	}
	var seen []string
	for info, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, info.Key)
		if info.Key != "c/1" {
			wantBody(t, s, info.Key, info.Key)
		}
		put(t, s, "a/0", "a/0") // behind the listing: must not show
		if err := s.Delete(t.Context(), "c/1"); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) < 2 || !slices.Equal(seen[:2], []string{"a/1", "b/1"}) {
		t.Errorf("list while used = %q, want a/1 and b/1, and perhaps c/1", seen)
	}
}

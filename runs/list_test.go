package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"qj/blob"
	"qj/blob/blobtest"
	"qj/jobspec"
)

// many adds n ended runs of mine, one a minute, and a few of others.
func (w *world) many(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		id := jobspec.NewRunID("ann", w.clock.Now(), [4]byte{0, 0, byte(i >> 8), byte(i)})
		w.add(t, id)
		w.put(t, revisionKey(id, 1), jobspec.Revision{Format: 1, Number: 1, At: w.clock.Now(), Status: jobspec.Status{State: jobspec.States()[5+i%4]}})
		w.clock.pass(time.Minute)
	}
	w.add(t, jobspec.NewRunID("bob", w.clock.Now(), [4]byte{1}))
	w.enter(t, jobspec.NewRunID("ann", w.clock.Now(), [4]byte{2}))
}

func TestList(t *testing.T) {
	const n = 450
	w := newWorld(t)
	w.many(t, n)
	s := w.service(t)
	failed := func(r Record) bool { return r.State() == jobspec.Failed }
	never := func(Record) bool { return false }
	for _, test := range []struct {
		name        string
		limit       int
		keep        func(Record) bool
		rows, total int
	}{
		{"all", 0, nil, n, n},
		{"some", 10, nil, 10, n},
		{"more than a batch", 300, nil, 300, n},
		{"more than there are", 1000, nil, n, n},
		{"failed", 0, failed, (n + 2) / 4, -1},
		{"some failed", 7, failed, 7, -1},
		{"failed over batches", 80, failed, 80, -1},
		{"none", 5, never, 0, -1},
	} {
		rows, total, err := s.List(t.Context(), test.limit, test.keep)
		if err != nil || len(rows) != test.rows || test.total >= 0 && total != test.total {
			t.Errorf("%s: %d rows of %d, %v", test.name, len(rows), total, err)
		}
		for i, row := range rows {
			if row.User != "ann" || row.Stale != 0 || i > 0 && row.Submitted.Before(rows[i-1].Submitted) || test.keep != nil && !test.keep(row.Record) {
				t.Fatalf("%s: row %d: %+v", test.name, i, row)
			}
		}
		if test.limit == 10 && rows[9].Submitted.Add(time.Minute) != w.clock.Now() {
			t.Errorf("%s: the newest is %s", test.name, rows[9].ID)
		}
	}
	if w.cluster.count("status") != 0 {
		t.Error("a cluster was asked about runs that have ended")
	}
}

// Runs that ended are taken from the index: the store is asked for the ids, and for nothing else.
func TestListUsesIndex(t *testing.T) {
	w := newWorld(t)
	w.many(t, 20)
	s := w.service(t)
	first, _, err := s.List(t.Context(), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	s.Stores["main"] = &blobtest.Faults{Store: w.store, Before: func(op blobtest.Op, key string) error {
		asked = append(asked, fmt.Sprint(op, " ", key))
		return nil
	}}
	second, _, err := s.List(t.Context(), 20, nil)
	if err != nil || !reflect.DeepEqual(first, second) {
		t.Errorf("the second table differs: %v", err)
	}
	if len(asked) != 2 || asked[0] != "list ids/" || !strings.HasPrefix(asked[1], "get runs/ann-") { // the id without a record
		t.Errorf("asked %v", asked)
	}
}

// A cluster that errs or hangs costs its own rows their freshness, and nobody else's.
func TestListStale(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		w := newWorld(t)
		s := w.service(t)
		ended, open, healthy := submit(t, s), submit(t, s), submit(t, s)
		w.cluster.set(ended.ID, jobspec.Status{State: jobspec.Completed})
		refresh(t, s, ended)
		w.clock.pass(time.Minute)
		w.cluster.set(open.ID, jobspec.Status{State: jobspec.Running})
		refresh(t, s, open)
		healthy.Cluster = "healthy"
		w.put(t, runKey(healthy.ID), healthy.Run)

		well := &cluster{jobs: map[jobspec.Handle]jobspec.Status{handleOf(healthy.ID): {State: jobspec.Running}}}
		single := s.Cluster
		s.Cluster = func(name string) (Cluster, error) {
			if name == "healthy" {
				return Cluster{Name: name, Backend: well}, nil
			}
			c, err := single(name)
			if hangs {
				c.Backend = hanging{w.cluster}
			}
			return c, err
		}
		if !hangs {
			w.cluster.before = func(string) error { return errRefused }
		}
		refresh(t, s, healthy)
		if hangs { // on another machine, which has not seen any of them
			s.Index = Index{Dir: t.TempDir()}
		}
		w.clock.pass(time.Hour)
		rows, total, err := s.List(t.Context(), 0, nil)
		if len(rows) != 3 || total != 3 {
			t.Fatalf("hangs %v: %d rows of %d, %v", hangs, len(rows), total, err)
		}
		if want := map[bool]error{false: errRefused, true: context.DeadlineExceeded}[hangs]; !errors.Is(err, want) || !strings.Contains(err.Error(), "ask cluster gpu: ") {
			t.Errorf("hangs %v: %v", hangs, err)
		}
		for _, row := range rows {
			want := map[jobspec.RunID]time.Duration{open.ID: time.Hour}[row.ID]
			if row.Stale != want {
				t.Errorf("hangs %v: %s, %s: stale %s, want %s", hangs, row.ID, row.State(), row.Stale, want)
			}
		}
	}
}

// hanging is a cluster that never answers.
type hanging struct{ *cluster }

func (hanging) Status(ctx context.Context, _ []jobspec.Handle) (map[jobspec.Handle]jobspec.Status, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Two stores make one table; one that is down is told of, and the other shown.
func TestListSeveralStores(t *testing.T) {
	a, b := newWorld(t), newWorld(t)
	a.many(t, 3)
	b.clock.pass(30 * time.Second)
	b.many(t, 3)
	down := errors.New("store is down")
	faulty := &blobtest.Faults{Store: b.store}
	s := a.service(t)
	s.Stores = map[string]blob.Store{"a": a.store, "b": faulty}
	rows, total, err := s.List(t.Context(), 0, nil)
	if err != nil || len(rows) != 6 || total != 6 {
		t.Fatalf("%d rows of %d, %v", len(rows), total, err)
	}
	for i, row := range rows {
		if want := string("ab"[i%2]); row.Store != want {
			t.Errorf("row %d is in %s, want %s", i, row.Store, want)
		}
	}
	faulty.Before = func(blobtest.Op, string) error { return down }
	rows, _, err = s.List(t.Context(), 0, nil)
	if !errors.Is(err, down) || len(rows) != 3 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// An index that cannot be written or read costs time, and a warning, and nothing else.
func TestIndexTrouble(t *testing.T) {
	w := newWorld(t)
	rec := submit(t, w.service(t))
	w.cluster.set(rec.ID, jobspec.Status{State: jobspec.Completed})

	s := w.service(t)
	s.Index = badIndex(t)
	if err := os.WriteFile(strings.TrimSuffix(s.Index.Dir, "/below"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var warnings []error
	s.Warn = func(err error) { warnings = append(warnings, err) }
	rows, _, err := s.List(t.Context(), 0, nil)
	if err != nil || len(rows) != 1 || rows[0].State() != jobspec.Completed {
		t.Errorf("%+v, %v", rows, err)
	}
	if len(warnings) == 0 || !strings.HasPrefix(warnings[0].Error(), "index run "+string(rec.ID)+": ") {
		t.Errorf("warnings %v", warnings)
	}

	s = w.service(t)
	if _, err := s.Find(t.Context(), string(rec.ID)); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(s.Index.path(rec.ID))
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"empty": "", "half": string(good[:len(good)/2]), "noise": "\x00\xff", "another run": strings.ReplaceAll(string(good), string(rec.ID), "ann-1-00000000"),
		"another format": strings.Replace(string(good), `"format":1`, `"format":2`, 1), "another store": strings.Replace(string(good), `"store":"main"`, `"store":"x"`, 1),
	} {
		if body == string(good) {
			t.Fatalf("%s: nothing is changed in %s", name, good)
		}
		if err := os.WriteFile(s.Index.path(rec.ID), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := s.Find(t.Context(), string(rec.ID)); err != nil || found.State() != jobspec.Completed || found.Store != "main" {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
		if mended, err := os.ReadFile(s.Index.path(rec.ID)); err != nil || string(mended) != string(good) {
			t.Errorf("%s is not mended: %s", name, mended)
		}
	}
}

// The index gives back what it was given, whole.
func TestIndexRoundTrip(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	rec := submit(t, s)
	code := 3
	rec.Replaces = "ann-1-00000001"
	rec.Revision.Abort = &jobspec.Abort{By: "x", At: w.clock.Now()}
	rec.Revision.ReplacedBy = "ann-1-00000002"
	rec.Revision.Status.Exit = &jobspec.Exit{Code: &code, Lines: []string{"<&>\u2028"}}
	rec.Job.Env = map[string]string{"A": "é"}
	if err := s.Index.put(rec, w.clock.Now()); err != nil {
		t.Fatal(err)
	}
	back, seen, ok := s.Index.get(rec.ID)
	if !ok || !seen.Equal(w.clock.Now()) || !reflect.DeepEqual(back, rec) {
		t.Errorf("%v: %+v\nwant %+v", ok, back, rec)
	}
	left, err := os.ReadDir(s.Index.Dir)
	if err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
}

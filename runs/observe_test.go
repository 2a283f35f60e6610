package runs

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"qj/blob"
	"qj/jobspec"
)

// A record follows what its scheduler says along legal moves only; what stays the same is not written
// again, and every revision is the one before plus one.
func TestRefreshMoves(t *testing.T) {
	for _, from := range jobspec.States() {
		for _, to := range jobspec.States() {
			if to == jobspec.Submitting {
				continue // no scheduler says so
			}
			t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
				w := newWorld(t)
				s := w.service(t)
				rec, err := s.revise(t.Context(), submit(t, s), func(rev *jobspec.Revision) error {
					rev.Status = jobspec.Status{State: from, Raw: string(from)}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				w.cluster.set(rec.ID, jobspec.Status{State: to, Raw: "word"})
				want := from
				if from.CanBecome(to) && !settled(rec) {
					want = to
				}
				fresh := refresh(t, s, rec)
				stored := w.load(t, rec.ID)
				if fresh.State() != want || stored.State() != want {
					t.Errorf("it is %s, and stored as %s", fresh.State(), stored.State())
				}
				if changed := stored.Revision.Number - rec.Revision.Number; changed < 0 || changed > 1 {
					t.Errorf("revision %d became %d", rec.Revision.Number, stored.Revision.Number)
				}
				if again := refresh(t, s, fresh); again.Revision.Number != fresh.Revision.Number {
					t.Errorf("no news is written down: %+v", again.Revision)
				}
			})
		}
	}
}

// An abort is one by its record: the launcher knows only that it was stopped. Who ended otherwise did so.
func TestVerdict(t *testing.T) {
	abort := &jobspec.Abort{By: "ann@desk"}
	for _, test := range []struct {
		state jobspec.State
		abort *jobspec.Abort
		want  jobspec.State
		code  jobspec.ReasonCode
	}{
		{jobspec.Preempted, abort, jobspec.Canceled, jobspec.ReasonAborted},
		{jobspec.Lost, abort, jobspec.Canceled, jobspec.ReasonAborted},
		{jobspec.Canceled, abort, jobspec.Canceled, jobspec.ReasonAborted},
		{jobspec.Completed, abort, jobspec.Completed, "x"},
		{jobspec.Failed, abort, jobspec.Failed, "x"},
		{jobspec.Running, abort, jobspec.Running, "x"},
		{jobspec.Preempted, nil, jobspec.Preempted, "x"},
		{jobspec.Lost, nil, jobspec.Lost, "x"},
		{jobspec.Canceled, nil, jobspec.Canceled, "x"},
	} {
		got := verdict(jobspec.Status{State: test.state, Raw: "r", Reason: jobspec.Reason{Code: "x", Text: "y"}}, test.abort)
		if got.State != test.want || got.Reason.Code != test.code || got.Raw != "r" {
			t.Errorf("%s, aborted %v: %+v", test.state, test.abort != nil, got)
		}
	}
}

func TestAbort(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	rec := submit(t, s)
	w.cluster.set(rec.ID, jobspec.Status{State: jobspec.Running})
	for range 2 { // the second finds the first, and asks again
		var err error
		if rec, err = s.Abort(t.Context(), rec); err != nil || rec.Revision.Abort == nil || rec.Revision.Number != 2 {
			t.Fatalf("%+v, %v", rec.Revision, err)
		}
	}
	if n := w.cluster.count("cancel"); n != 2 {
		t.Errorf("%d cancels", n)
	}
	rec = refresh(t, s, rec)
	if rec.State() != jobspec.Canceled || rec.Revision.Status.Reason != (jobspec.Reason{Code: jobspec.ReasonAborted, Text: "aborted by ann@desk"}) {
		t.Errorf("%+v", rec.Revision)
	}
	if again, err := s.Abort(t.Context(), rec); err != nil || again.Revision.Number != rec.Revision.Number || w.cluster.count("cancel") != 2 {
		t.Errorf("an ended run is aborted: %+v, %v", again.Revision, err)
	}
}

func TestAbortFails(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	rec := submit(t, s)
	w.cluster.before = func(string) error { return errRefused }
	if _, err := s.Abort(t.Context(), rec); !errors.Is(err, errRefused) {
		t.Errorf("cluster: %v", err)
	}
	s.Cluster = func(name string) (Cluster, error) { return Cluster{}, fmt.Errorf("unknown cluster %q", name) }
	if _, err := s.Abort(t.Context(), rec); err == nil || err.Error() != `unknown cluster "gpu"` {
		t.Errorf("no cluster: %v", err)
	}
	rec.Store = "gone"
	if _, err := s.Abort(t.Context(), rec); err == nil || err.Error() != `store "gone" is not configured here` {
		t.Errorf("no store: %v", err)
	}
}

// What a dead launcher left is cleared once, by whoever sees it first.
func TestDeadLauncherIsCleared(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	rec := submit(t, s)
	w.cluster.set(rec.ID, jobspec.Status{State: jobspec.Failed, Reason: jobspec.Reason{Code: jobspec.ReasonLauncherDied}})
	for range 3 {
		rec = refresh(t, s, rec)
	}
	if n := w.cluster.count("cancel"); n != 1 || rec.State() != jobspec.Failed {
		t.Errorf("%d cancels, %+v", n, rec.Revision)
	}
}

// That it cannot be cleared is an error, and no reason to call the run alive.
func TestDeadLauncherCannotBeCleared(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	rec := submit(t, s)
	w.cluster.set(rec.ID, jobspec.Status{State: jobspec.Failed, Reason: jobspec.Reason{Code: jobspec.ReasonLauncherDied}})
	w.cluster.before = func(call string) error {
		if call == "cancel" {
			return errRefused
		}
		return nil
	}
	fresh, err := s.Refresh(t.Context(), []Record{rec})
	if !errors.Is(err, errRefused) || fresh[0].State() != jobspec.Failed || w.load(t, rec.ID).State() != jobspec.Failed {
		t.Errorf("%+v, %v", fresh[0].Revision, err)
	}
}

// Where the scheduler does not know how a run ended, the launcher's own report tells.
func TestReportCompletesStatus(t *testing.T) {
	code := 7
	report := jobspec.Report{Format: 1, Status: jobspec.Status{
		State: jobspec.Failed, Reason: jobspec.Reason{Code: jobspec.ReasonRankFailed}, Exit: &jobspec.Exit{Code: &code, Rank: 3},
	}}
	running := report
	running.Status = jobspec.Status{State: jobspec.Running}
	for name, test := range map[string]struct {
		report any
		want   jobspec.ReasonCode
		warns  bool
	}{
		"ended":   {report, jobspec.ReasonRankFailed, false},
		"running": {running, "", false}, // it was killed before it could tell
		"none":    {nil, "", false},
		"damaged": {"what", "", true},
	} {
		w := newWorld(t)
		s := w.service(t)
		warned := false
		s.Warn = func(error) { warned = true }
		rec := submit(t, s)
		if test.report != nil {
			w.put(t, jobspec.RunFolder(rec.ID)+"/nodes/0.json", test.report)
		}
		w.cluster.set(rec.ID, jobspec.Status{State: jobspec.Failed, Raw: "EXIT"})
		got := refresh(t, s, rec).Revision.Status
		if got.State != jobspec.Failed || got.Raw != "EXIT" || got.Reason.Code != test.want || (got.Exit != nil) != (name == "ended") || warned != test.warns {
			t.Errorf("%s: %+v, warned %v", name, got, warned)
		}
	}
}

func TestResubmit(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	old := submit(t, s)
	w.cluster.set(old.ID, jobspec.Status{State: jobspec.Running})
	w.cluster.before = func(call string) error {
		if call == "submit" && (w.load(t, old.ID).Revision.Abort != nil || w.cluster.count("cancel") > 0) {
			t.Error("the old run is stopped before the new one is accepted")
		}
		return nil
	}
	q := request(t, s)
	q.Replaces = &old
	rec, err := s.Submit(t.Context(), q)
	if err != nil || rec.Replaces != old.ID {
		t.Fatalf("%+v, %v", rec, err)
	}
	stored := w.load(t, old.ID)
	if stored.Revision.ReplacedBy != rec.ID || stored.Revision.Abort == nil || !mustJob(t, w, old.ID).State.Ended() {
		t.Errorf("the old run is %+v", stored.Revision)
	}
	if old = refresh(t, s, stored); old.State() != jobspec.Canceled || old.Revision.ReplacedBy != rec.ID {
		t.Errorf("then it is %+v", old.Revision)
	}
	w.cluster.before = nil
	// Once more, of what has ended: linked, and not stopped.
	cancels := w.cluster.count("cancel")
	q.Replaces = &old
	third, err := s.Submit(t.Context(), q)
	if stored = w.load(t, old.ID); err != nil || stored.Revision.ReplacedBy != third.ID || stored.State() != jobspec.Canceled || w.cluster.count("cancel") != cancels {
		t.Errorf("the old run is %+v, %v", stored.Revision, err)
	}
	// Both that replace it are open, and do not fight over who does.
	number := stored.Revision.Number
	for range 3 {
		refresh(t, s, w.load(t, rec.ID))
		refresh(t, s, w.load(t, third.ID))
	}
	if n := w.load(t, old.ID).Revision.Number; n != number {
		t.Errorf("revision %d became %d", number, n)
	}
}

// The old run may lie in another store than the one that replaces it, or in one that is not known here.
func TestReplacesAcrossStores(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	s := w.service(t)
	old := submit(t, s)
	rec := other.add(t, "ann-1714979300-0000abcd")
	rec.Replaces, rec.Store = old.ID, "other"
	other.put(t, runKey(rec.ID), rec.Run)
	w.cluster.set(rec.ID, jobspec.Status{State: jobspec.Queued})
	s.Stores = map[string]blob.Store{"other": other.store}
	refresh(t, s, rec)
	if stored := w.load(t, old.ID); stored.Revision.Number != 1 {
		t.Errorf("out of reach, it is %+v", stored.Revision)
	}
	s.Stores["main"] = w.store
	refresh(t, s, rec)
	if stored := w.load(t, old.ID); stored.Revision.ReplacedBy != rec.ID || !mustJob(t, w, old.ID).State.Ended() {
		t.Errorf("it is %+v", stored.Revision)
	}
}

// A replacement that is refused leaves the old run alone.
func TestResubmitRefused(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	old := submit(t, s)
	w.cluster.before = func(call string) error {
		if call == "submit" {
			return errRefused
		}
		return nil
	}
	q := request(t, s)
	q.Replaces = &old
	if _, err := s.Submit(t.Context(), q); !errors.Is(err, errRefused) {
		t.Error(err)
	}
	w.clock.pass(time.Hour)
	if _, _, err := s.List(t.Context(), 0, nil); err != nil {
		t.Error(err)
	}
	if stored := w.load(t, old.ID); stored.Revision.ReplacedBy != "" || stored.Revision.Abort != nil || mustJob(t, w, old.ID).State != jobspec.Queued {
		t.Errorf("the old run is %+v", stored.Revision)
	}
}

// Of several clusters each is asked once, and one that fails takes nothing from the others.
func TestRefreshSeveralClusters(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	broken := &cluster{jobs: map[jobspec.Handle]jobspec.Status{}, before: func(string) error { return errRefused }}
	single := s.Cluster
	s.Cluster = func(name string) (Cluster, error) {
		if name == "broken" {
			return Cluster{Name: name, Backend: broken, Store: "main"}, nil
		}
		return single(name)
	}
	var recs []Record
	for range 3 {
		rec := submit(t, s)
		w.cluster.set(rec.ID, jobspec.Status{State: jobspec.Running})
		recs = append(recs, rec)
	}
	recs[1].Cluster = "broken"
	fresh, err := s.Refresh(t.Context(), recs)
	if !errors.Is(err, errRefused) || w.cluster.count("status") != 1 {
		t.Errorf("%v, asked %d times", err, w.cluster.count("status"))
	}
	for i, want := range []jobspec.State{jobspec.Running, jobspec.Queued, jobspec.Running} {
		if fresh[i].State() != want || recs[i].State() != jobspec.Queued {
			t.Errorf("record %d is %s, and was changed in place to %s", i, fresh[i].State(), recs[i].State())
		}
	}
}

func TestPollEvery(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	if d := s.PollEvery(submit(t, s)); d != 2*time.Second {
		t.Errorf("a cluster without an opinion: %s", d)
	}
	if d := s.PollEvery(Record{Run: jobspec.Run{Cluster: "gone"}}); d != 2*time.Second {
		t.Errorf("no cluster: %s", d)
	}
	c, err := s.Cluster("gpu")
	if err != nil {
		t.Fatal(err)
	}
	c.Backend = opinionated{w.cluster}
	s.Cluster = func(string) (Cluster, error) { return c, nil }
	if d := s.PollEvery(Record{}); d != time.Minute {
		t.Errorf("a cluster with an opinion: %s", d)
	}
}

type opinionated struct{ *cluster }

func (opinionated) PollEvery() time.Duration { return time.Minute }

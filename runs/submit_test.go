package runs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"qj/jobspec"
)

func TestSubmit(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	recorded := false
	w.cluster.before = func(call string) error {
		for key := range w.objects(t) {
			recorded = recorded || strings.HasSuffix(key, "/run.json")
		}
		if call == "submit" && !recorded {
			t.Error("submitted before it was recorded")
		}
		return nil
	}
	rec := submit(t, s)
	stored := w.load(t, rec.ID)
	if !reflect.DeepEqual(stored, rec) {
		t.Errorf("stored is %+v\nreturned was %+v", stored, rec)
	}
	want := jobspec.Run{Format: 1, ID: rec.ID, User: "ann", Host: "desk", Cluster: "gpu", Backend: "fake",
		Submitted: w.clock.Now(), Job: request(t, s).Job, Version: "v1"}
	if !reflect.DeepEqual(stored.Run, want) {
		t.Errorf("stored is %+v\nwant %+v", stored.Run, want)
	}
	rev := stored.Revision
	if rev.Number != 1 || rev.Handle != handleOf(rec.ID) || rev.Status.State != jobspec.Queued || rev.By != "ann@desk" || !rev.At.Equal(w.clock.Now()) {
		t.Errorf("revision %+v", rev)
	}
	if len(w.cluster.handles()) != 1 {
		t.Errorf("jobs %v", w.cluster.handles())
	}
}

// What a cluster can never run, and what is no job, leaves nothing behind.
func TestSubmitRefusesEarly(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	for command, want := range map[string]string{
		"impossible": "plan for cluster gpu: no machine is that large",
		"":           "the command is empty",
	} {
		q := request(t, s)
		q.Job.Command = []string{command}
		if _, err := s.Submit(t.Context(), q); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", command, err, want)
		}
		if _, err := s.Plan(t.Context(), q); err == nil || err.Error() != want {
			t.Errorf("plan %q: %v, want %s", command, err, want)
		}
	}
	q := request(t, s)
	q.Cluster.Store = "gone"
	if _, err := s.Submit(t.Context(), q); err == nil || err.Error() != `store "gone" is not configured here` {
		t.Errorf("no store: %v", err)
	}
	s.Random = strings.NewReader("abc")
	if _, err := s.Submit(t.Context(), request(t, s)); err == nil || !strings.HasPrefix(err.Error(), "draw a run id: ") {
		t.Errorf("no randomness: %v", err)
	}
	if left := w.objects(t); len(left) != 0 || len(w.cluster.calls) != 0 {
		t.Errorf("left %v, called %v", left, w.cluster.calls)
	}
}

// Plan shows what Submit would send, and does nothing.
func TestPlan(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	plan, err := s.Plan(t.Context(), request(t, s))
	if err != nil || len(plan.Documents) != 1 || !strings.Contains(string(plan.Documents[0].Body), string(plan.Run)) {
		t.Errorf("plan %+v, %v", plan, err)
	}
	if len(w.objects(t)) != 0 || len(w.cluster.calls) != 0 {
		t.Errorf("left %v, called %v", w.objects(t), w.cluster.calls)
	}
}

// A cluster that says no makes the run failed, with its words. If it had made the job all the same, the
// job is stopped.
func TestClusterRefuses(t *testing.T) {
	for _, after := range []bool{false, true} {
		w := newWorld(t)
		s := w.service(t)
		refuse := func(call string) error {
			if call == "submit" {
				return errRefused
			}
			return nil
		}
		if after {
			w.cluster.after = refuse
		} else {
			w.cluster.before = refuse
		}
		rec, err := s.Submit(t.Context(), request(t, s))
		if !errors.Is(err, errRefused) {
			t.Fatal(err)
		}
		status := w.load(t, rec.ID).Revision.Status
		if status.State != jobspec.Failed || status.Reason.Code != jobspec.ReasonSubmitFailed || !strings.Contains(status.Reason.Text, "quota exceeded") || status.Ended.IsZero() {
			t.Errorf("after %v: %+v", after, status)
		}
		if job, made := w.cluster.job(rec.ID); made != after || made && !job.State.Ended() {
			t.Errorf("after %v: the job is %+v", after, job)
		}
	}
}

// Where nobody can tell whether there is a job, the record stays open, and is settled later.
func TestClusterDoesNotAnswer(t *testing.T) {
	for _, cause := range []error{context.DeadlineExceeded, context.Canceled} {
		for _, made := range []bool{false, true} {
			w := newWorld(t)
			s := w.service(t)
			silent := func(string) error { return fmt.Errorf("post: %w", cause) }
			if made {
				w.cluster.after = silent
			} else {
				w.cluster.before = silent
			}
			rec, err := s.Submit(t.Context(), request(t, s))
			if !errors.Is(err, cause) {
				t.Fatal(err)
			}
			w.cluster.before, w.cluster.after = nil, nil
			w.settled(t, rec.ID, made)
		}
	}
}

// settled checks that a run whose submission was interrupted becomes what its cluster knows of it.
func (w *world) settled(t *testing.T, id jobspec.RunID, made bool) {
	t.Helper()
	s := w.service(t)
	rec := refresh(t, s, w.load(t, id))
	if made {
		if rec.State() != jobspec.Queued || rec.Revision.Handle != handleOf(id) {
			t.Errorf("%s is not adopted: %+v", id, rec.Revision)
		}
		return
	}
	if rec.State() != jobspec.Submitting {
		t.Errorf("%s is %s while its submitter may still be at it", id, rec.State())
	}
	w.clock.pass(settleAfter)
	rec = refresh(t, s, w.load(t, id))
	if rec.State() != jobspec.Lost || rec.Revision.Status.Reason.Code != jobspec.ReasonUnknownJob {
		t.Errorf("%s is not lost: %+v", id, rec.Revision)
	}
	number := rec.Revision.Number
	w.clock.pass(time.Hour)
	if rec = refresh(t, s, w.load(t, id)); rec.Revision.Number != number || rec.Revision.Status.Ended.Equal(w.clock.Now()) {
		t.Errorf("%s is lost anew: %+v", id, rec.Revision)
	}
	w.cluster.set(id, jobspec.Status{State: jobspec.Running, Raw: "R"})
	if rec = refresh(t, s, w.load(t, id)); rec.State() != jobspec.Running {
		t.Errorf("%s does not come back: %+v", id, rec.Revision)
	}
}

// Aborted between record and acceptance, a run is stopped by its own submitter.
func TestAbortedWhileSubmitting(t *testing.T) {
	w := newWorld(t)
	s, other := w.service(t), w.service(t)
	w.cluster.before = func(call string) error {
		if call != "submit" {
			return nil
		}
		rec, err := other.Find(t.Context(), Last)
		if err != nil {
			t.Fatal(err)
		}
		if rec, err = other.Abort(t.Context(), rec); err != nil || rec.State() != jobspec.Submitting {
			t.Errorf("abort: %s, %v", rec.State(), err)
		}
		return nil
	}
	rec := submit(t, s)
	if job, _ := w.cluster.job(rec.ID); !job.State.Ended() {
		t.Errorf("the job is %+v", job)
	}
	if rec = refresh(t, s, rec); rec.State() != jobspec.Canceled || rec.Revision.Status.Reason.Text != "aborted by ann@desk" {
		t.Errorf("%+v", rec.Revision)
	}
}

// Given up as lost by somebody else, a run is stopped by its own slow submitter.
func TestLostWhileSubmitting(t *testing.T) {
	w := newWorld(t)
	s, other := w.service(t), w.service(t)
	w.cluster.before = func(call string) error {
		if call == "submit" {
			rec, err := other.Find(t.Context(), Last)
			if err != nil {
				t.Fatal(err)
			}
			w.clock.pass(settleAfter)
			if rec = refresh(t, other, rec); rec.State() != jobspec.Lost {
				t.Errorf("it is %s", rec.State())
			}
		}
		return nil
	}
	rec := submit(t, s)
	if job, _ := w.cluster.job(rec.ID); !job.State.Ended() || rec.Revision.Handle == "" {
		t.Errorf("the job is %+v, the record %+v", job, rec.Revision)
	}
}

// Secrets go to the cluster by the private channel and are in no object of the store.
func TestSecretsStayOut(t *testing.T) {
	const value = "hunter2-value"
	w := newWorld(t)
	s := w.service(t)
	q := request(t, s)
	q.Job.Secrets = []string{"TOKEN"}
	q.Secrets = map[string]jobspec.Secret{"TOKEN": value}
	old, err := s.Submit(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	q.Replaces = &old
	if _, err := s.Submit(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.List(t.Context(), 0, nil); err != nil {
		t.Fatal(err)
	}
	if len(w.cluster.private) != 2 || w.cluster.private[0].Secrets["TOKEN"].Reveal() != value {
		t.Fatalf("the cluster got %d private values", len(w.cluster.private))
	}
	keys := []string{w.cluster.private[0].Key.Reveal(), w.cluster.private[1].Key.Reveal()}
	if len(keys[0]) != 64 || keys[0] == keys[1] {
		t.Errorf("run keys %q", keys)
	}
	objects := w.objects(t)
	if len(objects) < 6 {
		t.Errorf("only %d objects", len(objects))
	}
	for key, body := range objects {
		for _, private := range append(keys, value) {
			if strings.Contains(key+body, private) {
				t.Errorf("object %s holds a private value:\n%s", key, body)
			}
		}
	}
}

// Two runs never share the five characters that people type, nor an id.
func TestSuffixesDiffer(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	s.Random = narrow{rand.Reader, 8}
	suffixes := map[string]bool{}
	for range 8 {
		suffixes[submit(t, s).ID.Suffix()] = true
	}
	if len(suffixes) != 8 {
		t.Errorf("8 runs have %d suffixes", len(suffixes))
	}
	if _, err := s.Submit(t.Context(), request(t, s)); err == nil || err.Error() != "draw a run id: every suffix that was tried is taken" {
		t.Errorf("a ninth run of eight suffixes: %v", err)
	}
	if n := len(w.cluster.handles()); n != 8 {
		t.Errorf("%d jobs", n)
	}
	entries := slices.Collect(func(yield func(string) bool) {
		for key := range w.objects(t) {
			if strings.HasPrefix(key, idFolder) && !yield(key) {
				return
			}
		}
	})
	if len(entries) != 8 {
		t.Errorf("%d ids are entered", len(entries))
	}
}

func TestRedrawsTakenID(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	taken := jobspec.NewRunID("ann", w.clock.Now(), [4]byte{1, 2, 3, 4})
	w.add(t, taken)
	s.Random = strings.NewReader("\x01\x02\x03\x04" + "\x09\x02\x03\x04" + "\x01\x02\x03\x05")
	if rec := submit(t, s); rec.ID.Suffix() != "20305" {
		t.Errorf("drew %s", rec.ID)
	}
	if _, err := (records{"main", w.store}).load(t.Context(), taken); errors.Is(err, fs.ErrNotExist) {
		t.Error("the run that had the id first is gone")
	}
}

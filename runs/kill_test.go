package runs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"qj/blob/blobtest"
	"qj/jobspec"
)

var errKilled = errors.New("killed")

// killer lets a number of requests to store and cluster pass, then none any more: all that comes later is
// the doing of a process that does not exist. late lets the last request arrive, and loses its answer.
type killer struct {
	mu   sync.Mutex
	left int
	late bool
}

// before is asked when a request is made, after when it has been carried out.
func (k *killer) before() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left == 0 && k.late {
		k.left--
		return nil // arrives, and after takes its answer
	}
	if k.left <= 0 {
		k.left = -2
		return errKilled
	}
	k.left--
	return nil
}

func (k *killer) after() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left < 0 {
		return errKilled
	}
	return nil
}

// doomed is a service that is killed at its k-th request. What it warns of, nobody hears.
func (w *world) doomed(t *testing.T, k *killer) *Service {
	dying := *w
	dying.store = &blobtest.Faults{
		Store:  w.store,
		Before: func(blobtest.Op, string) error { return k.before() },
		After:  func(blobtest.Op, string) error { return k.after() },
	}
	s := dying.service(t)
	s.Warn = func(error) {}
	w.cluster.before = func(string) error { return k.before() }
	w.cluster.after = func(string) error { return k.after() }
	return s
}

// everyKill runs act in a fresh world with a kill at each of its requests in turn, until it gets through
// all of them, and afterwards check in the same world.
func everyKill(t *testing.T, prepare func(w *world) Record, act func(s *Service, rec Record) error, check func(t *testing.T, w *world, rec Record)) {
	t.Helper()
	for _, late := range []bool{false, true} {
		for k := 0; ; k++ {
			if k > 100 {
				t.Fatal("it never comes to an end")
			}
			w := newWorld(t)
			rec := prepare(w)
			killer := &killer{left: k, late: late}
			err := act(w.doomed(t, killer), rec)
			killed := killer.left < 0
			w.cluster.before, w.cluster.after = nil, nil
			name := fmt.Sprintf("killed at request %d, late %v", k, late)
			t.Run(name, func(t *testing.T) { check(t, w, rec) })
			if !killed {
				if err != nil {
					t.Fatalf("without a kill: %v", err)
				}
				if k < 4 {
					t.Fatalf("only %d requests: the kills prove nothing", k)
				}
				break
			}
		}
	}
}

// A submitter may be killed at any moment: there is no job without a run that the next table shows, and
// no run that stays open without a job.
func TestKilledSubmit(t *testing.T) {
	everyKill(t,
		func(*world) Record { return Record{} },
		func(s *Service, _ Record) error {
			_, err := s.Submit(t.Context(), request(t, s))
			return err
		},
		func(t *testing.T, w *world, _ Record) {
			s := w.service(t)
			rows, _, err := s.List(t.Context(), 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			jobs := w.cluster.handles()
			if len(jobs) > 1 || len(rows) < len(jobs) || len(rows) > 1 {
				t.Fatalf("%d jobs, %d runs", len(jobs), len(rows))
			}
			if len(rows) == 0 {
				if _, err := s.Find(t.Context(), Last); err == nil {
					t.Error("a run that no table shows is found")
				}
				submit(t, s) // and nothing stands in the way of the next
				return
			}
			if found, err := s.Find(t.Context(), rows[0].ID.Suffix()); err != nil || found.ID != rows[0].ID {
				t.Errorf("find: %v", err)
			}
			if !settled(rows[0].Record) { // else it is known to have failed
				w.settled(t, rows[0].ID, len(jobs) == 1)
			}
		})
}

// Whoever resubmits may be killed at any moment: the old run goes on until the new one is accepted, and
// after that it ends, with both records linked.
func TestKilledResubmit(t *testing.T) {
	everyKill(t,
		func(w *world) Record {
			old := submit(t, w.service(t))
			w.cluster.set(old.ID, jobspec.Status{State: jobspec.Running, Raw: "R"})
			return old
		},
		func(s *Service, old Record) error {
			q := request(t, s)
			q.Replaces = &old
			_, err := s.Submit(t.Context(), q)
			return err
		},
		func(t *testing.T, w *world, old Record) {
			s := w.service(t)
			accepted := jobspec.RunID("")
			for _, h := range w.cluster.handles() {
				if h != handleOf(old.ID) {
					accepted = jobspec.RunID(strings.TrimPrefix(string(h), "job/"))
				}
			}
			for range 3 { // time passes, people look at tables
				if _, _, err := s.List(t.Context(), 0, nil); err != nil {
					t.Fatal(err)
				}
				w.clock.pass(settleAfter)
			}
			before, job := w.load(t, old.ID), mustJob(t, w, old.ID)
			if job, _ := w.cluster.job(accepted); accepted == "" || job.Raw == "STOPPED" { // refused, as far as we know
				if before.State() != jobspec.Running || before.Revision.Abort != nil || before.Revision.ReplacedBy != "" {
					t.Errorf("nothing took its place, yet the old run is %+v", before.Revision)
				}
				return
			}
			if !job.State.Ended() || before.State() != jobspec.Canceled || before.Revision.ReplacedBy != accepted {
				t.Errorf("the new run is accepted, the old job is %+v, its record %+v", job, before.Revision)
			}
			if after := w.load(t, accepted); after.Replaces != old.ID || after.State() != jobspec.Queued {
				t.Errorf("the new run is %+v", after)
			}
		})
}

func mustJob(t *testing.T, w *world, id jobspec.RunID) jobspec.Status {
	t.Helper()
	job, ok := w.cluster.job(id)
	if !ok {
		t.Fatalf("there is no job of %s", id)
	}
	return job
}

// Whoever aborts may be killed: if the wish was written down, it is fulfilled.
func TestKilledAbort(t *testing.T) {
	everyKill(t,
		func(w *world) Record {
			rec := submit(t, w.service(t))
			w.cluster.set(rec.ID, jobspec.Status{State: jobspec.Running, Raw: "R"})
			return refresh(t, w.service(t), rec)
		},
		func(s *Service, rec Record) error {
			found, err := s.FindToAct(t.Context(), rec.ID.Suffix())
			if err == nil {
				_, err = s.Abort(t.Context(), found)
			}
			return err
		},
		func(t *testing.T, w *world, rec Record) {
			s := w.service(t)
			wished := w.load(t, rec.ID).Revision.Abort != nil
			for range 4 {
				rec = refresh(t, s, w.load(t, rec.ID))
				w.clock.pass(askAgain)
			}
			if want := map[bool]jobspec.State{true: jobspec.Canceled, false: jobspec.Running}[wished]; rec.State() != want {
				t.Errorf("wished %v: %+v", wished, rec.Revision)
			}
		})
}

// Whoever first sees that a launcher died may be killed: what it left is cleared by somebody.
func TestKilledRefresh(t *testing.T) {
	everyKill(t,
		func(w *world) Record {
			rec := submit(t, w.service(t))
			w.cluster.set(rec.ID, jobspec.Status{State: jobspec.Failed, Reason: jobspec.Reason{Code: jobspec.ReasonLauncherDied}})
			return rec
		},
		func(s *Service, rec Record) error {
			rec, err := s.Find(t.Context(), string(rec.ID))
			if err == nil {
				_, err = s.Refresh(t.Context(), []Record{rec})
			}
			return err
		},
		func(t *testing.T, w *world, rec Record) {
			rec = refresh(t, w.service(t), w.load(t, rec.ID))
			if rec.State() != jobspec.Failed || w.cluster.count("cancel") == 0 {
				t.Errorf("%+v after %v", rec.Revision, w.cluster.calls)
			}
			if numbers := w.revisions(t, rec.ID); !slices.Equal(numbers, []int{1, 2}) {
				t.Errorf("revisions %v", numbers)
			}
		})
}

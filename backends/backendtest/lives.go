package backendtest

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"

	"qj/backends"
	"qj/jobspec"
)

// completes: a run is seen running, then completed with code 0, by a backend that did not submit it.
func completes(t *testing.T, s *Suite) {
	task := s.Task(t, 1, 2, `cat code.txt; test "$WORLD_SIZE" = 2 && `+s.wait())
	h := s.Submit(t, s.Open(t), task)
	watcher := s.Open(t)
	s.Until(t.Context(), t, watcher, h, Is(jobspec.Running))
	status := s.Until(t.Context(), t, watcher, h, Is(jobspec.Completed))
	if exit := s.result(t, task.Run.ID, status); exit.Code == nil || *exit.Code != 0 || exit.Signal != 0 {
		t.Errorf("exit %+v", exit)
	}
	if status.Raw == "" || status.Started.IsZero() || status.Ended.Before(status.Started) {
		t.Errorf("raw %q, started %s, ended %s", status.Raw, status.Started, status.Ended)
	}
	if out := s.output(t, task.Run.ID); out != "code\n" {
		t.Errorf("rank 0 printed %q", out)
	}
}

// failsWithCodeAndRank: the rank that fails is blamed; the one that is stopped for it is not.
func failsWithCodeAndRank(t *testing.T, s *Suite) {
	task := s.Task(t, 1, 2, `test "$RANK" = 0 || exit 7; `+s.Forever())
	h := s.Submit(t, s.Open(t), task)
	status := s.Until(t.Context(), t, s.Open(t), h, Is(jobspec.Failed))
	if exit := s.result(t, task.Run.ID, status); exit.Code == nil || *exit.Code != 7 || exit.Rank != 1 || exit.Node != 0 {
		t.Errorf("exit %+v", exit)
	}
	if status.Reason.Code == "" || status.Reason.Text == "" {
		t.Errorf("reason %+v", status.Reason)
	}
}

// commandNotFound: a program that is not there fails the run with a shell's code.
func commandNotFound(t *testing.T, s *Suite) {
	task := s.Task(t, 1, 1, "")
	task.Run.Job.Command = []string{"no-such-program"}
	task.Launch.Job = task.Run.Job
	h := s.Submit(t, s.Open(t), task)
	status := s.Until(t.Context(), t, s.Open(t), h, Is(jobspec.Failed))
	if exit := s.result(t, task.Run.ID, status); exit.Code == nil || *exit.Code != 127 {
		t.Errorf("exit %+v", exit)
	}
}

// severalNodes: all of them run, know their place, and one's failure is the run's.
func severalNodes(t *testing.T, s *Suite) {
	script := `test "$WORLD_SIZE" = 4 && test "$LOCAL_WORLD_SIZE" = 2 && test "$RANK" = $((NODE_RANK * 2 + LOCAL_RANK))`
	good := s.Task(t, 2, 2, script)
	bad := s.Task(t, 2, 2, `test "$RANK" != 3 || exit 5; `+s.Forever())
	h, failing := s.Submit(t, s.Open(t), good), s.Submit(t, s.Open(t), bad)
	s.Until(t.Context(), t, s.Open(t), h, Is(jobspec.Completed))
	status := s.Until(t.Context(), t, s.Open(t), failing, Is(jobspec.Failed))
	if exit := s.result(t, bad.Run.ID, status); exit.Code == nil || *exit.Code != 5 || exit.Rank != 3 || exit.Node != 1 {
		t.Errorf("exit %+v", exit)
	}
}

// submitTwice: a repeat finds the job of the first time.
func submitTwice(t *testing.T, s *Suite) {
	task := s.Task(t, 2, 1, "echo once; "+s.wait())
	plan := s.Plan(t, s.Open(t), task)
	first := s.submitPlan(t, s.Open(t), plan)
	again := s.submitPlan(t, s.Open(t), plan)
	s.assertRanOnce(t, task.Run.ID, first, again)
}

// submitTwiceAtOnce: of two at the same time, one makes the job and both return it.
func submitTwiceAtOnce(t *testing.T, s *Suite) {
	task := s.Task(t, 1, 1, "echo once; "+s.wait())
	plan := s.Plan(t, s.Open(t), task)
	var handles [4]jobspec.Handle
	var both sync.WaitGroup
	for i := range handles {
		b := s.Open(t)
		both.Go(func() {
			h, err := b.Submit(t.Context(), plan)
			if err != nil {
				t.Errorf("submit: %v", err)
			}
			handles[i] = h
		})
	}
	both.Wait()
	if handles[0] == "" {
		t.FailNow()
	}
	t.Cleanup(func() { s.End(t, handles[0]) })
	s.assertRanOnce(t, task.Run.ID, handles[:]...)
}

func (s *Suite) assertRanOnce(t *testing.T, id jobspec.RunID, handles ...jobspec.Handle) {
	t.Helper()
	for _, h := range handles {
		if h != handles[0] {
			t.Fatalf("the handles differ: %v", handles)
		}
	}
	s.Until(t.Context(), t, s.Open(t), handles[0], Is(jobspec.Completed))
	if out := s.output(t, id); out != "once\n" {
		t.Errorf("rank 0 printed %q", out)
	}
}

// submitAfterEnd: a run that is over is not begun again.
func submitAfterEnd(t *testing.T, s *Suite) {
	task := s.Task(t, 1, 1, "echo once; exit 3")
	plan := s.Plan(t, s.Open(t), task)
	h := s.submitPlan(t, s.Open(t), plan)
	s.Until(t.Context(), t, s.Open(t), h, Is(jobspec.Failed))
	if again := s.submitPlan(t, s.Open(t), plan); again != h {
		t.Errorf("handle %s, before %s", again, h)
	}
	s.Until(t.Context(), t, s.Open(t), h, Is(jobspec.Failed))
	if out := s.output(t, task.Run.ID); out != "once\n" {
		t.Errorf("rank 0 printed %q", out)
	}
}

// statusOfMany: one question brings all that are known; of the others there is no word.
func statusOfMany(t *testing.T, s *Suite) {
	b := s.Open(t)
	none, err := b.Status(t.Context(), nil)
	if err != nil || len(none) != 0 {
		t.Errorf("status of none: %v, %v", none, err)
	}
	ask := map[jobspec.Handle]int{}
	for code := range 3 {
		h := s.Submit(t, b, s.Task(t, 1, 1, fmt.Sprintf("exit %d", code)))
		ask[h] = code
		s.Until(t.Context(), t, b, h, func(st jobspec.Status) bool { return st.State.Ended() })
	}
	handles := []jobspec.Handle{jobspec.Handle(newID(t))}
	for h := range ask {
		handles = append(handles, h)
	}
	statuses, err := s.Open(t).Status(t.Context(), handles)
	if err != nil || len(statuses) != len(ask) {
		t.Fatalf("status of %v: %v, %v", handles, statuses, err)
	}
	for h, code := range ask {
		if failed := statuses[h].State == jobspec.Failed; failed != (code != 0) {
			t.Errorf("the run that exits with %d is %+v", code, statuses[h])
		}
	}
}

// foundByRunID: a job is found by the run's id from when it was submitted, by any process.
func foundByRunID(t *testing.T, s *Suite) {
	b := s.Open(t)
	finder, ok := backends.As[backends.Finder](b)
	if !ok {
		return // Capabilities holds the harness to its word
	}
	task := s.Task(t, 1, 1, "true")
	if h, err := finder.Find(t.Context(), task.Run.ID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before it is submitted: %q, %v", h, err)
	}
	h := s.Submit(t, b, task)
	again, _ := backends.As[backends.Finder](s.Open(t))
	if found, err := again.Find(t.Context(), task.Run.ID); err != nil || found != h {
		t.Errorf("found %q, %v, want %q", found, err, h)
	}
}

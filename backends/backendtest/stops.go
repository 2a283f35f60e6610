package backendtest

import (
	"context"
	"errors"
	"io/fs"
	"reflect"
	"testing"

	"qj/backends"
	"qj/jobspec"
)

// cancelRunning: a run ends soon after somebody asks, on every node; to ask again does no harm.
func cancelRunning(t *testing.T, s *Suite) {
	h := s.Submit(t, s.Open(t), s.Task(t, 2, 1, s.Forever()))
	b := s.Open(t)
	s.Until(t.Context(), t, b, h, Is(jobspec.Running))
	for range 2 {
		if err := b.Cancel(t.Context(), h); err != nil {
			t.Fatalf("cancel: %v", err)
		}
	}
	status := s.Until(t.Context(), t, s.Open(t), h, func(st jobspec.Status) bool { return st.State.Ended() })
	if status.State != jobspec.Canceled && status.State != jobspec.Preempted {
		t.Errorf("ended as %+v", status)
	}
}

// cancelEnded: what is over stays as it was.
func cancelEnded(t *testing.T, s *Suite) {
	b := s.Open(t)
	for _, script := range []string{"true", "exit 9"} {
		h := s.Submit(t, b, s.Task(t, 1, 1, script))
		before := s.Until(t.Context(), t, b, h, func(st jobspec.Status) bool { return st.State.Ended() })
		if err := b.Cancel(t.Context(), h); err != nil {
			t.Errorf("cancel: %v", err)
		}
		after := s.Until(t.Context(), t, s.Open(t), h, func(st jobspec.Status) bool { return st.State.Ended() })
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%q was %+v, after a cancel it is %+v", script, before, after)
		}
	}
}

// cancelUnknown: there is nothing to stop, so all is well.
func cancelUnknown(t *testing.T, s *Suite) {
	b := s.Open(t)
	h := jobspec.Handle(newID(t))
	if err := b.Cancel(t.Context(), h); err != nil {
		t.Errorf("cancel: %v", err)
	}
	statuses, err := b.Status(t.Context(), []jobspec.Handle{h})
	if err != nil || len(statuses) != 0 {
		t.Errorf("cancelling made a job: %v, %v", statuses, err)
	}
}

// endedContext: nothing is begun for somebody who has left.
func endedContext(t *testing.T, s *Suite) {
	b := s.Open(t)
	task := s.Task(t, 1, 1, s.Forever())
	plan := s.Plan(t, b, task)
	if h, err := b.Submit(canceled(t), plan); !errors.Is(err, context.Canceled) {
		t.Errorf("submit: %q, %v", h, err)
	}
	running := s.Submit(t, b, s.Task(t, 1, 1, s.Forever()))
	if got, err := b.Status(canceled(t), []jobspec.Handle{running}); !errors.Is(err, context.Canceled) {
		t.Errorf("status: %v, %v", got, err)
	}
	finder, ok := backends.As[backends.Finder](b)
	if !ok {
		return
	}
	if h, err := finder.Find(t.Context(), task.Run.ID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a job was made: %q, %v", h, err)
	}
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

package backendtest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"qj/backends"
	"qj/blob"
	"qj/jobspec"
	"qj/snapshot"
)

// Suite is a harness with what all tests share. A backend may use it for tests of its own.
type Suite struct {
	Harness
	code jobspec.Code
}

// New uploads the snapshot that every run starts in: a folder with one file.
func New(t *testing.T, h Harness) *Suite {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "code.txt"), []byte("code\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := snapshot.Scan(dir, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	code, err := snapshot.Upload(t.Context(), h.Store, tree, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Suite{h, jobspec.Code{Snapshot: code.ID, Manifest: code.Manifest}}
}

func newID(t *testing.T) jobspec.RunID {
	t.Helper()
	var random [4]byte
	if _, err := rand.Read(random[:]); err != nil {
		t.Fatal(err)
	}
	return jobspec.NewRunID("backendtest", time.Now(), random)
}

// Task is a run of a shell script, without GPUs, as one process on each of so many nodes.
func (s *Suite) Task(t *testing.T, nodes, procs int, script string) backends.Task {
	t.Helper()
	run := jobspec.Run{
		Format: jobspec.Format, ID: newID(t), User: "backendtest", Cluster: "test", Backend: "test", Submitted: time.Now().UTC(),
		Job: jobspec.Job{
			Command: []string{"sh", "-c", script}, Code: s.code,
			Layout: jobspec.Layout{NumGPU: nodes * procs, Nodes: nodes, ProcsPerNode: procs},
		},
	}
	return backends.Task{Run: run, Launch: jobspec.Launch{
		Format: jobspec.Format, Run: run.ID, User: run.User, Job: run.Job, Store: s.StoreRef,
		Grace: jobspec.Duration(s.Patience / 10), JoinTimeout: jobspec.Duration(s.Patience),
	}}
}

// wait is a shell command that runs long enough to be seen running.
func (s *Suite) wait() string { return fmt.Sprintf("sleep %.1f", max(0.5, 5*s.Poll.Seconds())) }

// Forever is a shell command that does not end while a test looks.
func (s *Suite) Forever() string { return fmt.Sprintf("sleep %.0f", 10*s.Patience.Seconds()) }

// Plan makes a plan with a run key of its own, resolved where the backend has to.
func (s *Suite) Plan(t *testing.T, b backends.Backend, task backends.Task) backends.Plan {
	t.Helper()
	if r, ok := backends.As[backends.Resolver](b); ok {
		if err := r.Resolve(t.Context(), &task); err != nil {
			t.Fatalf("resolve: %v", err)
		}
	}
	p, err := b.Plan(task)
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	p.Private = jobspec.Private{Key: jobspec.Secret(fmt.Sprintf("%064x", task.Run.Submitted.UnixNano()))}
	return p
}

// Submit hands a task to a backend, and sees to it that nothing of it outlives the test.
func (s *Suite) Submit(t *testing.T, b backends.Backend, task backends.Task) jobspec.Handle {
	t.Helper()
	return s.submitPlan(t, b, s.Plan(t, b, task))
}

func (s *Suite) submitPlan(t *testing.T, b backends.Backend, p backends.Plan) jobspec.Handle {
	t.Helper()
	h, err := b.Submit(t.Context(), p)
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	if h == "" {
		t.Fatal("the handle is empty")
	}
	t.Cleanup(func() { s.End(t, h) })
	return h
}

// End cancels what a test left, by a backend of its own, and waits until it is over.
func (s *Suite) End(t *testing.T, h jobspec.Handle) {
	ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
	defer cancel()
	b := s.Open(t)
	if err := b.Cancel(ctx, h); err != nil {
		t.Errorf("cancel %s after the test: %v", h, err)
	}
	s.Until(ctx, t, b, h, func(st jobspec.Status) bool { return st.State.Ended() })
}

// Until asks for the status until it is as wanted, and holds every step to the table of legal moves. An
// ended run that is not as wanted, or the end of ctx, fails the test.
func (s *Suite) Until(ctx context.Context, t *testing.T, b backends.Backend, h jobspec.Handle, want func(jobspec.Status) bool) jobspec.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	tick := time.NewTicker(s.Poll)
	defer tick.Stop()
	last := jobspec.Status{State: jobspec.Submitting}
	for {
		statuses, err := b.Status(ctx, []jobspec.Handle{h})
		if err != nil {
			t.Fatalf("status: %v (last: %+v)", err, last)
		}
		now, known := statuses[h]
		if known {
			if !last.State.CanBecome(now.State) {
				t.Fatalf("went from %+v to %+v", last, now)
			}
			if want(now) {
				return now
			}
			if last = now; now.State.Ended() {
				t.Fatalf("ended unexpectedly: %+v %+v\n%s", now, now.Exit, s.logs(t, h))
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited %s in vain, last: %+v", s.Patience, last)
		}
	}
}

// Is is a condition for Until.
func Is(state jobspec.State) func(jobspec.Status) bool {
	return func(s jobspec.Status) bool { return s.State == state }
}

// result is the exit of an ended run: from the scheduler, or where that does not know, from the report of
// the run's own node 0.
func (s *Suite) result(t *testing.T, id jobspec.RunID, status jobspec.Status) jobspec.Exit {
	t.Helper()
	if status.Exit == nil {
		body, err := blob.ReadAll(t.Context(), s.Store, "runs/"+string(id)+"/nodes/0.json", 1<<20)
		if err != nil {
			t.Fatalf("neither the status nor the store tells the exit: %v", err)
		}
		var report jobspec.Report
		if err := json.Unmarshal(body, &report); err != nil {
			t.Fatal(err)
		}
		status = report.Status
	}
	if status.Exit == nil {
		t.Fatalf("no exit in %+v", status)
	}
	return *status.Exit
}

// objects reads all that the store has below a prefix, in key order.
func (s *Suite) objects(t *testing.T, prefix string) (keys []string, bodies []string) {
	t.Helper()
	for info, err := range s.Store.List(context.Background(), prefix, "") {
		if err != nil {
			t.Fatal(err)
		}
		body, err := blob.ReadAll(context.Background(), s.Store, info.Key, 64<<20)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		keys, bodies = append(keys, info.Key), append(bodies, string(body))
	}
	return keys, bodies
}

// logs is the output of every rank of a run, for a message, if the handle tells which run it is.
func (s *Suite) logs(t *testing.T, h jobspec.Handle) string {
	t.Helper()
	_, bodies := s.objects(t, "runs/"+string(h)+"/logs/")
	return strings.Join(bodies, "\n")
}

// output is the log of rank 0 of an ended run.
func (s *Suite) output(t *testing.T, id jobspec.RunID) string {
	t.Helper()
	var all []string
	keys, bodies := s.objects(t, "runs/"+string(id)+"/logs/")
	for i, key := range keys {
		if strings.Contains(key, "/rank-0/") {
			all = append(all, bodies[i])
		}
	}
	return strings.Join(all, "")
}

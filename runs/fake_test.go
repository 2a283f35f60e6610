package runs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"qj/backends"
	"qj/blob"
	"qj/blob/blobtest"
	"qj/jobspec"
)

// world is what survives a qj: a store, a cluster and a clock. Any number of services share it.
type world struct {
	store   blob.Store
	cluster *cluster
	clock   *clock
	index   Index
}

func newWorld(t *testing.T) *world {
	return &world{
		store: &blobtest.Memory{}, cluster: &cluster{jobs: map[jobspec.Handle]jobspec.Status{}},
		clock: &clock{now: time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)}, index: Index{Dir: t.TempDir()},
	}
}

// service is one qj, run by ann. Its warnings fail the test.
func (w *world) service(t *testing.T) *Service {
	return &Service{
		Stores: map[string]blob.Store{"main": w.store},
		Cluster: func(name string) (Cluster, error) {
			if name != "gpu" {
				return Cluster{}, fmt.Errorf("unknown cluster %q", name)
			}
			return Cluster{Name: "gpu", Type: "fake", Backend: w.cluster, Store: "main"}, nil
		},
		Index: w.index, User: "ann", By: "ann@desk", Now: w.clock.Now, Random: rand.Reader,
		Warn: func(err error) { t.Errorf("warning: %v", err) },
	}
}

// request is a job for the cluster of s.
func request(t *testing.T, s *Service) Request {
	t.Helper()
	c, err := s.Cluster("gpu")
	if err != nil {
		t.Fatal(err)
	}
	return Request{Cluster: c, Host: "desk", Version: "v1", Job: jobspec.Job{
		Command: []string{"train"}, Layout: jobspec.Layout{NumGPU: 1, Nodes: 1, ProcsPerNode: 1, GPUsPerNode: 1},
	}}
}

func submit(t *testing.T, s *Service) Record {
	t.Helper()
	rec, err := s.Submit(t.Context(), request(t, s))
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	return rec
}

// load reads a record past every index.
func (w *world) load(t *testing.T, id jobspec.RunID) Record {
	t.Helper()
	rec, err := records{"main", w.store}.load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func refresh(t *testing.T, s *Service, rec Record) Record {
	t.Helper()
	fresh, err := s.Refresh(t.Context(), []Record{rec})
	if err != nil {
		t.Fatalf("refresh: %v", err)
	}
	return fresh[0]
}

// objects reads the whole store.
func (w *world) objects(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for info, err := range w.store.List(context.Background(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		body, err := blob.ReadAll(context.Background(), w.store, info.Key, maxRecord)
		if err != nil {
			t.Fatal(err)
		}
		all[info.Key] = string(body)
	}
	return all
}

func (w *world) put(t *testing.T, key string, v any) {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := blob.PutBytes(t.Context(), w.store, key, body, blob.Replace); err != nil {
		t.Fatal(err)
	}
}

// add records a run of any user, as if it had been submitted.
func (w *world) add(t *testing.T, id jobspec.RunID) Record {
	t.Helper()
	run := jobspec.Run{Format: jobspec.Format, ID: id, User: id.User(), Cluster: "gpu", Submitted: id.Time()}
	w.enter(t, id)
	w.put(t, runKey(id), run)
	return Record{Run: run, Store: "main"}
}

// enter is what a submitter leaves that dies before the record is written.
func (w *world) enter(t *testing.T, id jobspec.RunID) {
	t.Helper()
	if err := blob.PutBytes(t.Context(), w.store, idFolder+id.Reversed(), nil, blob.IfAbsent); err != nil {
		t.Fatal(err)
	}
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// cluster is a scheduler in memory, and the backend for it. A job is queued until a test says otherwise.
type cluster struct {
	mu      sync.Mutex
	jobs    map[jobspec.Handle]jobspec.Status
	private []jobspec.Private
	calls   []string

	before func(call string) error // fails calls that never arrive
	after  func(call string) error // fails calls whose answer is lost
}

var errRefused = errors.New("quota exceeded")

func handleOf(id jobspec.RunID) jobspec.Handle { return jobspec.Handle("job/" + id) }

func (c *cluster) Find(_ context.Context, id jobspec.RunID) (jobspec.Handle, error) {
	if _, ok := c.job(id); !ok {
		return "", fs.ErrNotExist
	}
	return handleOf(id), nil
}

func (c *cluster) Plan(task backends.Task) (backends.Plan, error) {
	body, err := json.Marshal(task.Launch)
	if slices.Contains(task.Run.Job.Command, "impossible") {
		err = errors.New("no machine is that large")
	}
	return backends.Plan{Run: task.Run.ID, Documents: []backends.Document{{Name: "job", Body: body}}}, err
}

func (c *cluster) Submit(ctx context.Context, p backends.Plan) (jobspec.Handle, error) {
	h := handleOf(p.Run)
	return h, c.around(ctx, "submit", h, func() {
		c.private = append(c.private, p.Private)
		if _, ok := c.jobs[h]; !ok {
			c.jobs[h] = jobspec.Status{State: jobspec.Queued, Raw: "PENDING"}
		}
	})
}

func (c *cluster) Status(ctx context.Context, hs []jobspec.Handle) (map[jobspec.Handle]jobspec.Status, error) {
	statuses := map[jobspec.Handle]jobspec.Status{}
	err := c.around(ctx, "status", "", func() {
		for _, h := range hs {
			if status, ok := c.jobs[h]; ok {
				statuses[h] = status
			}
		}
	})
	return statuses, err
}

func (c *cluster) Cancel(ctx context.Context, h jobspec.Handle) error {
	return c.around(ctx, "cancel", h, func() {
		if job, ok := c.jobs[h]; ok && !job.State.Ended() {
			c.jobs[h] = jobspec.Status{State: jobspec.Preempted, Raw: "STOPPED", Reason: jobspec.Reason{Code: jobspec.ReasonTerminated}}
		}
	})
}

func (c *cluster) around(ctx context.Context, call string, h jobspec.Handle, do func()) error {
	if c.before != nil {
		if err := c.before(call); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	c.calls = append(c.calls, strings.TrimSpace(call+" "+string(h)))
	do()
	c.mu.Unlock()
	if c.after != nil {
		return c.after(call)
	}
	return nil
}

// set is what the scheduler says of a run from now on; no state means that it knows nothing.
func (c *cluster) set(id jobspec.RunID, status jobspec.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs[handleOf(id)] = status; status.State == "" {
		delete(c.jobs, handleOf(id))
	}
}

func (c *cluster) job(id jobspec.RunID) (jobspec.Status, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	status, ok := c.jobs[handleOf(id)]
	return status, ok
}

func (c *cluster) handles() []jobspec.Handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.jobs))
}

// count says how often a call began with these words.
func (c *cluster) count(words string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, call := range c.calls {
		if strings.HasPrefix(call, words) {
			n++
		}
	}
	return n
}

// narrow draws ids with few different suffixes.
type narrow struct {
	io.Reader
	suffixes byte
}

func (n narrow) Read(p []byte) (int, error) {
	size, err := io.ReadFull(n.Reader, p)
	if size == 4 {
		p[1], p[2], p[3] = p[1]&0xf0, 0, p[3]%n.suffixes
	}
	return size, err
}

func badIndex(t *testing.T) Index { return Index{Dir: filepath.Join(t.TempDir(), "file", "below")} }

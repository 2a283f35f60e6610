// Package backends is what qj asks of a cluster. A backend turns a Task into requests for one kind of
// scheduler and reads its answers; it knows no store, no launcher and no command line. Each lives in a
// folder of its own, is listed in cli/registry.go, and passes backendtest.
package backends

import (
	"context"
	"io"
	"time"

	"qj/jobspec"
)

// Backend is the whole of what every cluster must do. A backend never prints, never retries, reads no
// flag and no environment, and keeps nothing in memory that another process would need.
type Backend interface {
	// Plan renders exactly what Submit will send. Pure: no I/O, equal tasks give equal bytes. It refuses a
	// task that the cluster can never run.
	Plan(t Task) (Plan, error)

	// Submit is idempotent by run id: the id is the job's name at the scheduler. After a time-out, look up
	// before sending again. An error means that nothing runs, or that a repeat will find what does.
	Submit(ctx context.Context, p Plan) (jobspec.Handle, error)

	// Status observes many jobs in as few requests as the scheduler allows. Unknown ones are absent.
	Status(ctx context.Context, hs []jobspec.Handle) (map[jobspec.Handle]jobspec.Status, error)

	// Cancel asks and does not wait. Cancelling what has ended stops nothing, but may clear what it left.
	Cancel(ctx context.Context, h jobspec.Handle) error
}

// Task is a run that is ready to be planned.
type Task struct {
	Run    jobspec.Run
	Launch jobspec.Launch
	// Facts is what a Resolver read from the cluster, for Plan to use: "gpus", "vm_size", …
	Facts map[string]string
}

// Plan is what Submit will send, in order, with `${secret:NAME}` where a private value goes.
type Plan struct {
	Run       jobspec.RunID
	Documents []Document
	Private   jobspec.Private `json:"-"` // Submit fills the placeholders from it; Plan leaves it empty
}

// Document is one request body or file of a plan.
type Document struct {
	Name string
	Body []byte
}

// Resolver is a backend that must read something from the cluster before it can plan.
type Resolver interface {
	Resolve(ctx context.Context, t *Task) error
}

// Sheller is a backend that can open a shell, or run a command, where a rank runs.
type Sheller interface {
	// Shell returns the exit code of what ran there; an error means that it could not be run.
	Shell(ctx context.Context, h jobspec.Handle, s Shell) (int, error)
}

// Shell says where to run what. An empty command means an interactive shell.
type Shell struct {
	Node    int
	Command []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
}

// Finder is a backend that can look a job up by the run's id: a run is found that way whose submitter died
// before it wrote the handle down.
type Finder interface {
	// Find returns the handle, and fs.ErrNotExist when the scheduler knows no such job.
	Find(ctx context.Context, id jobspec.RunID) (jobspec.Handle, error)
}

// Wrapper is a backend around another one.
type Wrapper interface {
	Unwrap() Backend
}

// As finds a capability in b or in what it wraps, as errors.As does.
func As[C any](b Backend) (C, bool) {
	for b != nil {
		if c, ok := b.(C); ok {
			return c, true
		}
		w, ok := b.(Wrapper)
		if !ok {
			break
		}
		b = w.Unwrap()
	}
	var none C
	return none, false
}

// Poller is a backend that says how often it is reasonable to ask for the status of a run that somebody
// waits for. One without an opinion is asked every two seconds.
type Poller interface {
	PollEvery() time.Duration
}

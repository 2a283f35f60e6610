//go:build unix

// Package local runs jobs as real processes on this machine, or in a container on it. A run is its own
// launcher, detached from qj and the terminal; its state is in files of the user's state folder, so any
// later qj of the same user sees it. It knows no store and starts no daemon.
package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"qj/backends"
	"qj/jobspec"
	"qj/statefile"
)

// Config is the backend's own part of a cluster's section.
type Config struct {
	Slots   int    `yaml:"slots"`   // without GPUs: how many processes of all runs may run at once; 0 = no limit
	Image   string `yaml:"image"`   // run in a container of this image
	Runtime string `yaml:"runtime"` // docker or podman; default: docker
}

// Options is what the backend gets from outside.
type Options struct {
	Config
	Dir      string                                                   // state folder of this user's local runs
	Unpack   func() error                                             // makes sure that the launcher is there
	Launcher []string                                                 // the launcher's program and first arguments
	GPUs     func(ctx context.Context, environ []string) (int, error) // how many this machine leaves us
	Host     string                                                   // name of this machine
	User     string                                                   // uid:gid, for containers
	Environ  []string                                                 // what runs inherit
}

// Backend runs jobs on this machine.
type Backend struct{ o Options }

var (
	_ backends.Backend  = (*Backend)(nil)
	_ backends.Resolver = (*Backend)(nil)
	_ backends.Sheller  = (*Backend)(nil)
	_ backends.Finder   = (*Backend)(nil)
	_ backends.Poller   = (*Backend)(nil)
)

// New checks the configuration.
func New(o Options) (*Backend, error) {
	if o.Slots < 0 {
		return nil, fmt.Errorf("slots: %d is negative", o.Slots)
	}
	switch o.Runtime {
	case "":
		o.Runtime = "docker"
	case "docker", "podman":
	default:
		return nil, fmt.Errorf("runtime: %q is neither docker nor podman", o.Runtime)
	}
	return &Backend{o}, nil
}

// handle is the run id itself: the folder of a run is named by it.
func handle(id jobspec.RunID) jobspec.Handle { return jobspec.Handle(id) }

// Find knows a run from when its first launcher was started.
func (b *Backend) Find(_ context.Context, id jobspec.RunID) (jobspec.Handle, error) {
	if !b.folder(id).known(0) {
		return "", fmt.Errorf("find run %s: %w", id, fs.ErrNotExist)
	}
	return handle(id), nil
}

// PollEvery is short: a status is a few small files.
func (b *Backend) PollEvery() time.Duration { return 150 * time.Millisecond }

const factGPUs = "gpus"

// Resolve counts the machine's GPUs, unless the job asks for none.
func (b *Backend) Resolve(ctx context.Context, t *backends.Task) error {
	if t.Launch.Job.Layout.GPUsPerNode == 0 && t.Launch.Job.Layout.NumGPU > 0 {
		return nil
	}
	n, err := b.o.GPUs(ctx, b.o.Environ)
	if err != nil && t.Launch.Job.Layout.NumGPU > 0 { // who wants none needs no driver that works
		return fmt.Errorf("%w (with gpu_per_node: 0 nobody asks for them)", err)
	}
	if t.Facts == nil {
		t.Facts = map[string]string{}
	}
	t.Facts[factGPUs] = strconv.Itoa(n)
	return nil
}

// start is the document that tells how one node is started.
type start struct {
	Argv []string `json:"argv"`
}

func startDocument(node int) string { return fmt.Sprintf("node-%d.json", node) }

// Plan is the launch plan and one command line per node: several nodes run side by side on loopback.
func (b *Backend) Plan(t backends.Task) (backends.Plan, error) {
	slots, err := b.slots(t)
	if err != nil {
		return backends.Plan{}, err
	}
	t.Launch.Slots = slots
	launch, err := json.MarshalIndent(t.Launch, "", "  ")
	if err != nil {
		return backends.Plan{}, fmt.Errorf("render launch plan: %w", err)
	}
	plan := backends.Plan{Run: t.Run.ID, Documents: []backends.Document{{Name: jobspec.LaunchFile, Body: launch}}}
	for node := range t.Launch.Job.Layout.Nodes {
		body, err := json.MarshalIndent(start{Argv: b.argv(t, node)}, "", "  ")
		if err != nil {
			return backends.Plan{}, fmt.Errorf("render start of node %d: %w", node, err)
		}
		plan.Documents = append(plan.Documents, backends.Document{Name: startDocument(node), Body: body})
	}
	return plan, nil
}

// slots says what the run has to hold before it starts: GPUs where there are some, else numbered slots
// if the cluster limits them.
func (b *Backend) slots(t backends.Task) (*jobspec.Slots, error) {
	s := &jobspec.Slots{
		Dir:    filepath.Join(b.o.Dir, "slots", b.o.Host), // the folder may be shared, the GPUs are not
		Ticket: fmt.Sprintf("%020d-%s", t.Run.Submitted.UnixNano(), t.Run.ID),
	}
	layout := t.Launch.Job.Layout
	gpus, _ := strconv.Atoi(t.Facts[factGPUs]) // absent: none
	switch {
	case gpus > 0:
		s.GPUs, s.Need = true, layout.GPUsPerNode*layout.Nodes
		if s.Need > gpus {
			return nil, fmt.Errorf("-n %d needs %d GPUs, this machine has %d", layout.NumGPU, s.Need, gpus)
		}
		return s, nil
	case b.o.Slots > 0:
		s.Count, s.Need = b.o.Slots, layout.WorldSize()
		if s.Need > s.Count {
			return nil, fmt.Errorf("-n %d needs %d slots, this cluster has %d", layout.NumGPU, s.Need, s.Count)
		}
		return s, nil
	}
	return nil, nil
}

// argv is the command line of one node's launcher.
func (b *Backend) argv(t backends.Task, node int) []string {
	run := b.folder(t.Run.ID)
	launcher := append(append([]string{}, b.o.Launcher...), "run",
		"--boot", run.boot(), "--work", run.node(node), "--node", strconv.Itoa(node), "--master", "127.0.0.1")
	if b.o.Image == "" {
		return launcher
	}
	return b.container(t, node, launcher)
}

// Submit writes the plan into the run's folder and starts its launchers. Starting one twice is harmless:
// the second finds the first and leaves.
func (b *Backend) Submit(ctx context.Context, p backends.Plan) (jobspec.Handle, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := b.o.Unpack(); err != nil {
		return "", err
	}
	run := b.folder(p.Run)
	if err := os.MkdirAll(run.boot(), 0o700); err != nil {
		return "", fmt.Errorf("make run folder: %w", err)
	}
	starts := p.Documents[1:]
	if run.known(len(starts) - 1) {
		return handle(p.Run), nil // an earlier try did all of it
	}
	private, err := p.Private.Reveal()
	if err != nil {
		return "", fmt.Errorf("write private values: %w", err)
	}
	if err := statefile.Write(filepath.Join(run.boot(), jobspec.PrivateFile), private); err != nil {
		return "", fmt.Errorf("write private values: %w", err)
	}
	for _, d := range p.Documents {
		if err := statefile.Write(filepath.Join(run.boot(), d.Name), d.Body); err != nil {
			return "", fmt.Errorf("write plan: %w", err)
		}
	}
	for node, document := range starts {
		err := ctx.Err()
		if err == nil && !run.known(node) {
			err = b.start(run, node, document.Body)
		}
		if err != nil {
			return "", errors.Join(err, b.Cancel(context.WithoutCancel(ctx), handle(p.Run)), run.forget())
		}
	}
	run.awaitPlace(ctx)
	return handle(p.Run), nil
}

// Status reads the files of each run.
func (b *Backend) Status(ctx context.Context, hs []jobspec.Handle) (map[jobspec.Handle]jobspec.Status, error) {
	statuses := map[jobspec.Handle]jobspec.Status{}
	for _, h := range hs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		status, err := b.folder(jobspec.RunID(h)).status()
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, statefile.ErrDamaged): // the other runs are to be seen all the same
			statuses[h] = b.folder(jobspec.RunID(h)).damaged(err)
		case err != nil: // the machine is in trouble, not the run
			return nil, fmt.Errorf("look at run %s: %w", h, err)
		default:
			statuses[h] = status
		}
	}
	return statuses, nil
}

func (b *Backend) folder(id jobspec.RunID) folder {
	return folder{dir: filepath.Join(b.o.Dir, "runs", string(id)), id: id}
}

package runs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"qj/backends"
	"qj/jobspec"
)

// Request is a job on its way to a cluster.
type Request struct {
	Cluster  Cluster
	Job      jobspec.Job
	Launch   jobspec.Launch            // store, grace, limits; the rest is filled in here
	Secrets  map[string]jobspec.Secret // values of Job.Secrets
	Replaces *Record                   // the run that this one takes the place of
	Host     string
	Version  string
}

// Plan renders what Submit would send, and sends nothing.
func (s *Service) Plan(ctx context.Context, q Request) (backends.Plan, error) {
	id, err := s.draw()
	if err != nil {
		return backends.Plan{}, err
	}
	return s.plan(ctx, q, s.run(q, id))
}

func (s *Service) run(q Request, id jobspec.RunID) jobspec.Run {
	run := jobspec.Run{
		Format: jobspec.Format, ID: id, User: s.User, Host: q.Host, Cluster: q.Cluster.Name, Backend: q.Cluster.Type,
		Submitted: s.Now().UTC(), Job: q.Job, Version: q.Version,
	}
	if q.Replaces != nil {
		run.Replaces = q.Replaces.ID
	}
	return run
}

func (s *Service) plan(ctx context.Context, q Request, run jobspec.Run) (backends.Plan, error) {
	if err := run.Job.Validate(); err != nil {
		return backends.Plan{}, err
	}
	launch := q.Launch
	launch.Format, launch.Run, launch.User, launch.Job = jobspec.Format, run.ID, run.User, run.Job
	task := backends.Task{Run: run, Launch: launch}
	if resolver, ok := backends.As[backends.Resolver](q.Cluster.Backend); ok {
		if err := resolver.Resolve(ctx, &task); err != nil {
			return backends.Plan{}, fmt.Errorf("look at cluster %s: %w", q.Cluster.Name, err)
		}
	}
	plan, err := q.Cluster.Backend.Plan(task)
	if err != nil {
		return backends.Plan{}, fmt.Errorf("plan for cluster %s: %w", q.Cluster.Name, err)
	}
	return plan, nil
}

// Submit records the run, hands it to its cluster, and records that. When it fails, either there is no
// run, or the record tells what became of it.
func (s *Service) Submit(ctx context.Context, q Request) (Record, error) {
	rec, plan, err := s.enter(ctx, q)
	if err != nil {
		return Record{}, err
	}
	if plan.Private, err = private(q.Secrets); err != nil {
		return rec, err
	}
	handle, err := q.Cluster.Backend.Submit(ctx, plan)
	if err != nil {
		return rec, s.refused(ctx, q.Cluster, rec, fmt.Errorf("submit run %s: %w", rec.ID, err))
	}
	rec, err = s.revise(ctx, rec, func(rev *jobspec.Revision) error {
		rev.Handle = handle
		if rev.Status.State == "" || rev.Status.State == jobspec.Submitting {
			rev.Status.State = jobspec.Queued
		}
		return nil
	})
	if err != nil {
		return rec, err
	}
	if rec.Revision.Abort != nil || rec.State().Ended() { // somebody aborted it, or gave it up, meanwhile
		if err := q.Cluster.Backend.Cancel(ctx, handle); err != nil {
			return rec, fmt.Errorf("abort run %s: %w", rec.ID, err)
		}
	}
	if q.Replaces != nil {
		_, err = s.abort(ctx, *q.Replaces, rec.ID)
	}
	return rec, err
}

// enter draws an id that nobody has and writes the record. The plan is made first: a job that the
// cluster can never run leaves no record.
func (s *Service) enter(ctx context.Context, q Request) (Record, backends.Plan, error) {
	r, err := s.records(q.Cluster.Store)
	if err != nil {
		return Record{}, backends.Plan{}, err
	}
	const tries = 100
	for range tries {
		id, err := s.draw()
		if err != nil {
			return Record{}, backends.Plan{}, err
		}
		run := s.run(q, id)
		plan, err := s.plan(ctx, q, run)
		if err != nil {
			return Record{}, backends.Plan{}, err
		}
		err = r.create(ctx, run)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		rec := Record{Run: run, Store: r.name}
		rec.Revision.Status.State = jobspec.Submitting
		return rec, plan, err
	}
	return Record{}, backends.Plan{}, errors.New("draw a run id: every suffix that was tried is taken")
}

func (s *Service) draw() (jobspec.RunID, error) {
	var random [4]byte
	if _, err := io.ReadFull(s.Random, random[:]); err != nil {
		return "", fmt.Errorf("draw a run id: %w", err)
	}
	return jobspec.NewRunID(s.User, s.Now(), random), nil
}

// private makes what the nodes get by the private channel only.
func private(secrets map[string]jobspec.Secret) (jobspec.Private, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return jobspec.Private{}, fmt.Errorf("make run key: %w", err)
	}
	return jobspec.Private{Key: jobspec.Secret(hex.EncodeToString(key)), Secrets: secrets}, nil
}

// refused records that the cluster did not take the run, after it has seen to it that this is so: an error
// may come after the job. Where nobody can tell, the record stays as it is, and a later refresh settles it.
func (s *Service) refused(ctx context.Context, c Cluster, rec Record, cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, context.Canceled) {
		return cause
	}
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	h, err := jobOf(ctx, c.Backend, rec)
	if err == nil && h != "" {
		err = c.Backend.Cancel(ctx, h)
	}
	if err != nil {
		return errors.Join(cause, err)
	}
	_, err = s.revise(ctx, rec, func(rev *jobspec.Revision) error {
		rev.Status = jobspec.Status{State: jobspec.Failed, Ended: s.Now().UTC(),
			Reason: jobspec.Reason{Code: jobspec.ReasonSubmitFailed, Text: cause.Error()}}
		return nil
	})
	return errors.Join(cause, err)
}

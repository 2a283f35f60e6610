package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"qj/backends"
	"qj/blob"
	"qj/jobspec"
)

// settleAfter is how old a run may be that its scheduler does not know before it counts as lost: its
// submitter may still be at it.
const settleAfter = 10 * time.Minute

// Refresh observes runs and records what changed. Ended runs are returned as they are. The clusters are
// asked side by side, one request each; what one that fails holds is returned as last known, and its
// error with it.
func (s *Service) Refresh(ctx context.Context, recs []Record) ([]Record, error) {
	byCluster := map[string][]int{}
	for i, rec := range recs {
		if !settled(rec) {
			byCluster[rec.Cluster] = append(byCluster[rec.Cluster], i)
		}
	}
	fresh := slices.Clone(recs)
	errs := make(chan error, len(byCluster))
	var asked sync.WaitGroup
	for name, indices := range byCluster {
		asked.Go(func() { errs <- s.refreshCluster(ctx, name, fresh, indices) })
	}
	asked.Wait()
	close(errs)
	var failed []error
	for err := range errs {
		failed = append(failed, err)
	}
	return fresh, errors.Join(failed...)
}

func (s *Service) refreshCluster(ctx context.Context, name string, recs []Record, indices []int) error {
	cluster, err := s.Cluster(name)
	if err != nil {
		return err
	}
	var handles []jobspec.Handle
	for _, i := range indices {
		if h := handleOf(cluster.Backend, recs[i]); h != "" {
			handles = append(handles, h)
		}
	}
	statuses, err := cluster.Backend.Status(ctx, handles)
	if err != nil {
		return fmt.Errorf("ask cluster %s: %w", name, err)
	}
	var failed []error
	for _, i := range indices {
		h := handleOf(cluster.Backend, recs[i])
		status, known := statuses[h]
		rec, err := s.observe(ctx, cluster, recs[i], h, status, known)
		recs[i] = rec
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// handleOf is the run's job at the scheduler, even if its submitter died before it wrote that down.
func handleOf(b backends.Backend, rec Record) jobspec.Handle {
	if rec.Revision.Handle != "" {
		return rec.Revision.Handle
	}
	if settler, ok := backends.As[backends.Settler](b); ok {
		return settler.HandleOf(rec.ID)
	}
	return ""
}

// observe brings one record up to date with what its scheduler says.
func (s *Service) observe(ctx context.Context, c Cluster, rec Record, h jobspec.Handle, status jobspec.Status, known bool) (Record, error) {
	if !known {
		if s.Now().Sub(rec.Submitted) < settleAfter && rec.State() == jobspec.Submitting {
			return rec, nil
		}
		status = jobspec.Status{State: jobspec.Lost, Ended: s.Now().UTC(), Started: rec.Revision.Status.Started,
			Reason: jobspec.Reason{Code: jobspec.ReasonUnknownJob, Text: "cluster " + c.Name + " does not know it"}}
		h = rec.Revision.Handle
	} else if status.State.Ended() && status.Exit == nil {
		s.complete(ctx, rec, &status)
	}
	updated, err := s.revise(ctx, rec, func(rev *jobspec.Revision) error {
		next := verdict(status, rev.Abort)
		if rev.Number > 0 && (same(rev.Status, next) && rev.Handle == h || !rev.Status.State.CanBecome(next.State)) {
			return errNoChange
		}
		rev.Status, rev.Handle = next, h
		return nil
	})
	if err != nil {
		return rec, err
	}
	s.remember(updated)
	if updated.Revision.Status.Reason.Code == jobspec.ReasonLauncherDied && !rec.State().Ended() && h != "" {
		err = c.Backend.Cancel(ctx, h) // whatever it left
	}
	return updated, errors.Join(err, s.finishReplacement(ctx, updated))
}

// complete adds what the launcher itself reported about the end, where the scheduler knows less.
func (s *Service) complete(ctx context.Context, rec Record, status *jobspec.Status) {
	body, err := blob.ReadAll(ctx, s.Stores[rec.Store], Prefix(rec.ID)+"/nodes/0.json", maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return // it never came so far
	}
	var report jobspec.Report
	if err == nil {
		err = json.Unmarshal(body, &report)
	}
	if err != nil {
		s.Warn(fmt.Errorf("read the report of run %s: %w", rec.ID, err))
		return
	}
	if report.Status.State.Ended() {
		raw := status.Raw
		*status = report.Status
		status.Raw = raw
	}
}

// verdict puts somebody's abort into words: a launcher only knows that it was asked to stop.
func verdict(status jobspec.Status, abort *jobspec.Abort) jobspec.Status {
	stopped := status.State == jobspec.Preempted || status.State == jobspec.Lost || status.State == jobspec.Canceled
	if abort != nil && stopped {
		status.State = jobspec.Canceled
		status.Reason = jobspec.Reason{Code: jobspec.ReasonAborted, Text: "aborted by " + abort.By}
	}
	return status
}

// same says whether an observation brings nothing new.
func same(a, b jobspec.Status) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// finishReplacement aborts the run that an accepted one replaces, if who resubmitted it died before.
func (s *Service) finishReplacement(ctx context.Context, rec Record) error {
	if rec.Replaces == "" || rec.State() == jobspec.Submitting {
		return nil
	}
	old, err := s.load(ctx, found{rec.Replaces, rec.Store})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it lies in another store: whoever resubmits there waits for the abort
	}
	if err != nil || old.Revision.ReplacedBy == rec.ID {
		return err
	}
	return s.replace(ctx, old, rec.ID)
}

// replace links an old run to the one that takes its place, and aborts it if it still runs.
func (s *Service) replace(ctx context.Context, old Record, by jobspec.RunID) error {
	old, err := s.revise(ctx, old, func(rev *jobspec.Revision) error {
		rev.ReplacedBy = by
		return nil
	})
	if err != nil || old.State().Ended() {
		return err
	}
	_, err = s.Abort(ctx, old)
	return err
}

// Abort asks the run to stop and does not wait. A run that has ended stays as it is.
func (s *Service) Abort(ctx context.Context, rec Record) (Record, error) {
	cluster, err := s.Cluster(rec.Cluster)
	if err != nil {
		return rec, err
	}
	rec, err = s.revise(ctx, rec, func(rev *jobspec.Revision) error {
		if rev.Status.State.Ended() || rev.Abort != nil {
			return errNoChange
		}
		if rev.Status.State == "" {
			rev.Status.State = jobspec.Submitting
		}
		rev.Abort = &jobspec.Abort{By: s.By, At: s.Now().UTC()}
		return nil
	})
	if err != nil || rec.State().Ended() {
		return rec, err
	}
	h := handleOf(cluster.Backend, rec)
	if h == "" {
		return rec, nil // its submitter sees the abort when it has the handle, and cancels
	}
	if err := cluster.Backend.Cancel(ctx, h); err != nil {
		return rec, fmt.Errorf("abort run %s: %w", rec.ID, err)
	}
	return rec, nil
}

// PollEvery is how often it makes sense to refresh a run that somebody waits for.
func (s *Service) PollEvery(rec Record) time.Duration {
	const usual = 2 * time.Second
	cluster, err := s.Cluster(rec.Cluster)
	if err != nil {
		return usual
	}
	if p, ok := backends.As[backends.PollEvery](cluster.Backend); ok {
		return p.PollEvery()
	}
	return usual
}

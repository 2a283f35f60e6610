package runs

import (
	"cmp"
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

// askAgain is how long an open run that somebody wanted stopped is left in peace. After that it is asked to
// stop once more: who asked first may have died after writing it down.
const askAgain = time.Minute

// Refresh observes runs and records what changed. Ended runs are returned as they are. The clusters are
// asked side by side, one request each; what one that fails holds is returned as last known, and its
// error with it.
func (s *Service) Refresh(ctx context.Context, recs []Record) ([]Record, error) {
	fresh, _, err := s.refresh(ctx, recs)
	return fresh, err
}

// refresh says also which records are up to date now.
func (s *Service) refresh(ctx context.Context, recs []Record) (fresh []Record, current []bool, err error) {
	fresh, current = slices.Clone(recs), make([]bool, len(recs))
	byCluster := map[string][]int{}
	for i, rec := range recs {
		if current[i] = settled(rec); !current[i] {
			byCluster[rec.Cluster] = append(byCluster[rec.Cluster], i)
		}
	}
	errs := make(chan error, len(byCluster))
	var asked sync.WaitGroup
	for name, indices := range byCluster {
		asked.Go(func() { errs <- s.refreshCluster(ctx, name, fresh, current, indices) })
	}
	asked.Wait()
	close(errs)
	var failed []error
	for err := range errs {
		failed = append(failed, err)
	}
	return fresh, current, errors.Join(failed...)
}

// refreshCluster replaces those records that indices name, and marks which are current.
func (s *Service) refreshCluster(ctx context.Context, name string, recs []Record, current []bool, indices []int) error {
	cluster, err := s.Cluster(name)
	if err != nil {
		return err
	}
	handles := make([]jobspec.Handle, len(recs))
	var known []jobspec.Handle
	for _, i := range indices {
		if handles[i], err = jobOf(ctx, cluster.Backend, recs[i]); err != nil {
			return fmt.Errorf("ask cluster %s: %w", name, err)
		}
		if handles[i] != "" {
			known = append(known, handles[i])
		}
	}
	statuses, err := cluster.Backend.Status(ctx, known)
	if err != nil {
		return fmt.Errorf("ask cluster %s: %w", name, err)
	}
	var failed []error
	for _, i := range indices {
		if status, ok := statuses[handles[i]]; ok {
			recs[i], err = s.observe(ctx, cluster, recs[i], handles[i], status)
		} else {
			recs[i], err = s.miss(ctx, cluster, recs[i])
		}
		current[i] = err == nil
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// jobOf is the run's job at the scheduler, even if its submitter died before it wrote that down; "" if there
// is none.
func jobOf(ctx context.Context, b backends.Backend, rec Record) (jobspec.Handle, error) {
	if rec.Revision.Handle != "" {
		return rec.Revision.Handle, nil
	}
	finder, ok := backends.As[backends.Finder](b)
	if !ok {
		return "", nil
	}
	h, err := finder.Find(ctx, rec.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return h, err
}

// observe brings one record up to date with what its scheduler says. What that calls for is done before it
// is written down: if we die in between, somebody does it again.
func (s *Service) observe(ctx context.Context, c Cluster, rec Record, h jobspec.Handle, status jobspec.Status) (Record, error) {
	if status.State.Ended() && status.Exit == nil {
		s.complete(ctx, rec, &status)
	}
	abort := rec.Revision.Abort
	unheard := abort != nil && !status.State.Ended() && s.Now().Sub(abort.At) > askAgain
	var tidied error
	died := status.Reason.Code == jobspec.ReasonLauncherDied || status.Reason.Code == jobspec.ReasonRebooted
	if unheard || status.State.Ended() && died { // which may have left something
		tidied = c.Backend.Cancel(ctx, h)
	}
	tidied = errors.Join(tidied, s.finishReplacement(ctx, rec))
	rec, err := s.note(ctx, rec, h, status)
	return rec, errors.Join(tidied, err)
}

// miss is what becomes of a run that its scheduler does not know.
func (s *Service) miss(ctx context.Context, c Cluster, rec Record) (Record, error) {
	young := s.Now().Sub(rec.Submitted) < settleAfter
	if rec.State() == jobspec.Lost || rec.State() == jobspec.Submitting && young {
		return rec, nil
	}
	return s.note(ctx, rec, rec.Revision.Handle, jobspec.Status{
		State: jobspec.Lost, Ended: s.Now().UTC(), Started: rec.Revision.Status.Started,
		Reason: jobspec.Reason{Code: jobspec.ReasonUnknownJob, Text: "cluster " + c.Name + " does not know it"},
	})
}

// note writes an observation down, if it is news and a legal move.
func (s *Service) note(ctx context.Context, rec Record, h jobspec.Handle, status jobspec.Status) (Record, error) {
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
	return updated, nil
}

// complete adds what the launcher itself reported about the end, where the scheduler knows less.
func (s *Service) complete(ctx context.Context, rec Record, status *jobspec.Status) {
	body, err := blob.ReadAll(ctx, s.Stores[rec.Store], jobspec.ReportKey(rec.ID, 0), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return // it never came so far
	}
	var report jobspec.Report
	if err == nil {
		report, err = jobspec.ParseReport(body)
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
	stopped := status.State == jobspec.Preempted || status.State == jobspec.Lost || status.State == jobspec.Canceled ||
		status.State == jobspec.Failed && status.Reason.Code == jobspec.ReasonLauncherDied // told before it could listen
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
	if rec.Replaces == "" {
		return nil
	}
	for _, store := range s.storeNames() {
		old, err := s.load(ctx, found{rec.Replaces, store})
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case old.Revision.ReplacedBy == "":
			_, err = s.abort(ctx, old, rec.ID)
			return err
		}
		_, err = s.Refresh(ctx, []Record{old}) // it may not have heard the abort
		return err
	}
	return nil // its store is not configured here
}

// Abort asks the run to stop and does not wait. A run that has ended stays as it is.
func (s *Service) Abort(ctx context.Context, rec Record) (Record, error) {
	return s.abort(ctx, rec, "")
}

// abort writes down that the run is to stop, and by which one it is replaced, if any, then asks for it.
func (s *Service) abort(ctx context.Context, rec Record, replacedBy jobspec.RunID) (Record, error) {
	rec, err := s.revise(ctx, rec, func(rev *jobspec.Revision) error {
		stop := !rev.Status.State.Ended() && rev.Abort == nil
		if !stop && replacedBy == "" {
			return errNoChange
		}
		if stop {
			rev.Abort = &jobspec.Abort{By: s.By, At: s.Now().UTC()}
		}
		rev.ReplacedBy = cmp.Or(replacedBy, rev.ReplacedBy)
		return nil
	})
	if err != nil {
		return rec, err
	}
	s.remember(rec)
	if rec.State().Ended() {
		return rec, nil
	}
	cluster, err := s.Cluster(rec.Cluster)
	if err != nil {
		return rec, err
	}
	h, err := jobOf(ctx, cluster.Backend, rec)
	if err != nil {
		return rec, fmt.Errorf("abort run %s: %w", rec.ID, err)
	}
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
	if p, ok := backends.As[backends.Poller](cluster.Backend); ok {
		return p.PollEvery()
	}
	return usual
}

//go:build unix

package launcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"qj/jobspec"
	"qj/process"
)

// lead runs a node from set-up to the last byte of log.
type lead struct {
	*node
	inherited []string // the environment that the launcher was started with
	kids      *children
	guard     *guardLink
	peers     peers
	log       *stream
	slots     []*os.File      // the locks on them
	impatient context.Context // ends when processes have to be killed without grace
}

var (
	errTerminated = errors.New("the launcher was told to stop")
	errGuardDied  = errors.New("the launcher's guard was killed")
	errElsewhere  = errors.New("another node failed first") // nothing of this node's own to tell
)

func runLead(o facts) (int, error) {
	// Ranks are killed by the kernel when the thread that started them ends: that must be with the process.
	runtime.LockOSThread()
	l, err := newLead(o)
	if err != nil {
		return exitSetup, err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	hurry, rush := context.WithCancel(context.Background())
	defer rush()
	l.impatient = hurry
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-signals:
				cancel(errTerminated)
			case <-l.guard.gone:
				rush()
				cancel(errGuardDied)
				return
			}
		}
	}()
	status := l.run(ctx)
	return exitCode(status), nil
}

func newLead(o facts) (*lead, error) {
	n, err := load(o)
	if err != nil {
		return nil, err
	}
	guard, err := newGuardLink()
	if err != nil {
		return nil, err
	}
	if err := process.BecomeSubreaper(); err != nil {
		return nil, err
	}
	l := &lead{node: n, inherited: os.Environ(), guard: guard, kids: newChildren()}
	n.streams.trouble = l.awaitStore
	if l.log, err = n.streams.start(context.Background(), n.launcherStream(), false); err != nil {
		return nil, err
	}
	return l, nil
}

// run takes the node through the whole of the run and reports its end.
func (l *lead) run(ctx context.Context) jobspec.Status {
	l.peers = alone{l.launch.Job.Layout}
	own, err := l.work(ctx)
	if err != nil && errors.Is(err, context.Canceled) {
		err = context.Cause(ctx) // a package below knows only that it was stopped
	}
	if err != nil && !errors.Is(err, errElsewhere) {
		own = l.failure(err)
		l.peers.failed(*own)
		l.logf("%s", own.Reason.Text)
	}
	patience := context.WithoutCancel(ctx)
	// While this node waits for others it can still be told to stop: then it tells them.
	heard := context.AfterFunc(ctx, func() { l.peers.failed(*l.failure(context.Cause(ctx))) })
	verdict := l.peers.settle(patience, own)
	heard()
	if verdict.Ended.IsZero() {
		verdict.Ended = time.Now().UTC()
	}
	l.evidence(&verdict)
	l.hold(ctx, verdict)
	l.tell(l.report.state(jobspec.Finishing, verdict.Reason))
	draining, cancel := context.WithTimeout(patience, drainLimit)
	defer cancel()
	return l.end(draining, verdict, l.peers.leave)
}

// work does everything up to the end of this node's ranks. A status is the failure of a rank, an error
// that of the node.
func (l *lead) work(ctx context.Context) (*jobspec.Status, error) {
	if err := l.meet(ctx); err != nil {
		return nil, err
	}
	devices, err := l.queue(ctx)
	if err != nil {
		return nil, err
	}
	l.tell(l.report.state(jobspec.Preparing, jobspec.Reason{}))
	dir, err := l.setUp(ctx)
	if err != nil {
		return nil, err
	}
	a, err := l.peers.ready(ctx, devices)
	if err != nil {
		return nil, err
	}
	l.tell(l.report.update(func(r *jobspec.Report) { r.Status.Folder = dir }))
	ranks, failed, err := l.startRanks(context.WithoutCancel(ctx), a, dir)
	if err == nil && failed == nil {
		l.tell(l.report.state(jobspec.Running, jobspec.Reason{}))
		failed = l.watchRanks(ctx, ranks)
	} else {
		if failed != nil {
			l.peers.failed(*failed) // before the grace period of this node's other ranks
		}
		<-l.sweep()
	}
	l.drainRanks(ranks)
	if err == nil && failed == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if failed != nil {
		l.evidence(failed)
	}
	return failed, err
}

// queue waits for the slots that the run needs, if it needs any, and holds them as long as the process
// lives. It returns the GPUs among them.
func (l *lead) queue(ctx context.Context) (gpus []string, err error) {
	s := l.launch.Slots
	if s == nil || l.facts.Node != 0 {
		return nil, nil
	}
	waiting := func(text string) {
		l.tell(l.report.state(jobspec.Queued, jobspec.Reason{Code: jobspec.ReasonWaiting, Text: text}))
	}
	list := func(context.Context) ([]slot, error) { return numbered(s.Count), nil }
	if s.GPUs {
		list = l.gpuLister()
	}
	ids, files, err := claim(ctx, *s, l.launch.Run, list, waiting)
	if err != nil {
		return nil, err
	}
	l.slots = files
	if !s.GPUs {
		return nil, nil
	}
	return append([]string{}, ids...), nil
}

// gpuLister asks nvidia-smi at most every two seconds: who waits for a GPU tries its lock more often.
func (l *lead) gpuLister() func(context.Context) ([]slot, error) {
	const every = 2 * time.Second
	var slots []slot
	var asked time.Time
	return func(ctx context.Context) (_ []slot, err error) {
		if time.Since(asked) < every {
			return slots, nil
		}
		slots, err = machineGPUs(ctx, l.kids, l.inherited)
		asked = time.Now()
		return slots, err
	}
}

// failure turns what stopped the node into the status that tells of it.
func (l *lead) failure(err error) *jobspec.Status {
	var over *runOver
	if errors.As(err, &over) {
		return &over.verdict
	}
	status := &jobspec.Status{State: jobspec.Failed, Ended: time.Now().UTC()}
	code := jobspec.ReasonSetupFailed
	var missing *nodesMissing
	switch {
	case errors.Is(err, errTerminated):
		status.State, code = jobspec.Preempted, jobspec.ReasonTerminated
	case errors.Is(err, errGuardDied):
		code = jobspec.ReasonLauncherDied
	case errors.As(err, &missing):
		code = jobspec.ReasonNodesMissing
	}
	status.Reason = jobspec.Reason{Code: code, Text: err.Error()}
	if l.launch.Job.Layout.Nodes > 1 && missing == nil { // which names nodes itself
		status.Reason.Text = fmt.Sprintf("node %d: %v", l.facts.Node, err)
	}
	status.Exit = &jobspec.Exit{Node: l.facts.Node}
	return status
}

// awaitStore says what the end of the run waits for while the store does not take the last logs.
func (l *lead) awaitStore(trouble error) {
	if trouble == nil {
		return
	}
	l.tell(l.report.update(func(r *jobspec.Report) {
		if s := &r.Status; s.State == jobspec.Finishing && s.Reason.Code != jobspec.ReasonHeld {
			s.Reason = jobspec.Reason{Code: jobspec.ReasonWaiting, Text: "waits for the store to take the last logs: " + trouble.Error()}
		}
	}))
}

// hold keeps the node of a failed run for a while, so that somebody can look.
func (l *lead) hold(ctx context.Context, verdict jobspec.Status) {
	keep := time.Duration(l.launch.Job.Hold)
	if keep <= 0 || verdict.State != jobspec.Failed || ctx.Err() != nil {
		return
	}
	until := time.Now().Add(keep)
	l.tell(l.report.update(func(r *jobspec.Report) {
		r.Status.State = jobspec.Finishing
		r.Status.Exit = verdict.Exit
		r.Status.Reason = jobspec.Reason{Code: jobspec.ReasonHeld,
			Text: fmt.Sprintf("%s; held for ssh until %s", verdict.Reason.Text, until.Format(time.RFC3339))}
	}))
	select {
	case <-time.After(keep):
	case <-ctx.Done():
	}
	<-l.sweep() // shells that were opened meanwhile are not ours, but what they were told to start below us is
}

// logf writes a line into the launcher's own stream.
func (l *lead) logf(format string, args ...any) {
	fmt.Fprintf(l.log, "%s "+format+"\n", append([]any{time.Now().UTC().Format(time.RFC3339Nano)}, args...)...)
}

// tell logs an error that must not stop the run.
func (l *lead) tell(err error) {
	if err != nil {
		l.logf("%v", err)
	}
}

//go:build unix

package launcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"qj/jobspec"
	"qj/logsync"
	"qj/process"
	"qj/statefile"
)

// runGuard starts the lead, waits for it, and takes over if it is killed.
func runGuard(o facts) (int, error) {
	signals := make(chan os.Signal, 8) // before all else: who is told to stop while it starts has to hear it
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := os.MkdirAll(o.Work, 0o700); err != nil {
		return exitSetup, fmt.Errorf("make work folder: %w", err)
	}
	lock, err := lockWork(o.Work)
	if err != nil {
		return exitSetup, err
	}
	if lock == nil {
		return 0, nil // this node of the run is up already: being started twice is no error
	}
	defer lock.Close()
	var left jobspec.Report
	if statefile.ReadJSON(filepath.Join(o.Work, jobspec.ReportFile), &left) == nil && left.Status.State.Ended() {
		return exitCode(left.Status), nil // and so is being started again after the end
	}
	n, err := load(o)
	if err != nil {
		return exitSetup, err
	}
	if err := process.BecomeSubreaper(); err != nil {
		return exitSetup, err
	}
	kids := newChildren()
	link, theirs, err := newPipeKeeper()
	if err != nil {
		return exitSetup, err
	}
	pid, ended, err := startLead(o, kids, theirs, lock)
	theirs.Close()
	if err != nil {
		return exitSetup, fmt.Errorf("start launcher: %w", err)
	}
	lead, err := noteProcesses(o.Work, pid)
	if err != nil {
		return exitSetup, err
	}
	asked := false
	for {
		select {
		case <-signals: // a person or the platform wants the node to end: the lead knows how
			asked = true
			if err := lead.Signal(syscall.SIGTERM); err != nil {
				fmt.Fprintf(os.Stderr, "qj-node: %v\n", err)
			}
		case e := <-ended:
			if n.report.resume() {
				return e.code(), nil
			}
			return n.takeOver(verdictOn(e, asked), link), nil
		}
	}
}

// lockWork makes sure that one launcher runs the node. nil means that another one does. The lead holds the
// same lock: while one of the two lives, the node is taken.
func lockWork(work string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(work, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock work folder: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock work folder: %w", err)
}

// The descriptors that the guard hands to the lead.
const (
	fdSocket = 3
	fdLock   = 4
)

// startLead starts this program again as the lead.
func startLead(o facts, kids *children, socket, lock *os.File) (int, <-chan exit, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, nil, err
	}
	argv := slices.Concat(o.program, []string{"lead"}, arguments(o))
	return kids.start(argv, self, &os.ProcAttr{
		Env:   os.Environ(),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, fdSocket: socket, fdLock: lock},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
}

// noteProcesses writes down who runs the node, for the backend's liveness check and signals.
func noteProcesses(work string, pid int) (lead process.ID, err error) {
	var pair process.Pair
	if pair.Guard, err = process.Self(); err != nil {
		return lead, err
	}
	if lead, err = process.Of(pid); err != nil && !errors.Is(err, os.ErrNotExist) {
		return lead, err
	}
	pair.Lead = lead
	return lead, statefile.WriteJSON(filepath.Join(work, jobspec.ProcessesFile), pair)
}

// takeOver ends the node in place of the lead: nothing that it started may live on, nothing that ranks
// wrote may be lost, and the record must say why.
func (n *node) takeOver(verdict jobspec.Status, link *pipeKeeper) int {
	process.End(context.Background(), 0, family)
	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	whole := n.salvage(ctx, link.collected())
	leave := func(_ context.Context, streams map[string]int64, complete bool) (map[string]int64, bool) {
		return streams, complete && whole
	}
	return exitCode(n.end(ctx, verdict, leave))
}

// verdictOn is what the end of the lead means for the run that it did not bring to an end.
func verdictOn(e exit, asked bool) jobspec.Status {
	status := jobspec.Status{State: jobspec.Failed, Ended: e.at.UTC()}
	status.Reason = jobspec.Reason{Code: jobspec.ReasonLauncherDied,
		Text: fmt.Sprintf("the launcher ended with exit code %d before the run did", e.code())}
	if !e.status.Signaled() {
		return status
	}
	s := e.status.Signal()
	status.Reason.Text = fmt.Sprintf("the launcher was killed by signal %d (%s)", int(s), signalName(s))
	if asked && s == syscall.SIGTERM { // our own, before the lead was ready for it
		status.State = jobspec.Preempted
		status.Reason = jobspec.Reason{Code: jobspec.ReasonTerminated, Text: errTerminated.Error()}
	}
	return status
}

// salvage brings what is left in the pipes into the files and begins to ship all of them. It returns
// false if something could not be kept.
func (n *node) salvage(ctx context.Context, pipes map[logsync.Stream]*os.File) (whole bool) {
	ids, err := n.streams.onDisk()
	whole = err == nil
	for _, id := range ids {
		st, err := n.streams.start(ctx, id, true)
		if err != nil {
			whole = false // the verdict matters more than one stream
			continue
		}
		if pipe := pipes[id]; pipe != nil {
			pipe.SetReadDeadline(time.Now().Add(outOfReach))
			st.copyFrom(pipe, func(error) {}) // the stream itself says what it lacks
			pipe.Close()
		}
	}
	return whole
}

// end ships what is to be shipped, publishes the final status and removes what must not outlive the run.
func (n *node) end(ctx context.Context, status jobspec.Status, leave leaver) jobspec.Status {
	lengths, complete, spent := n.streams.finish(ctx)
	status.Streams, status.LogsComplete = leave(ctx, lengths, complete)
	if !complete && len(lengths) > 0 {
		kept := "output that did not reach the store is kept in " + n.streams.dir
		status.Reason.Text = strings.TrimPrefix(status.Reason.Text+"; "+kept, "; ")
	}
	last := n.report.newest().Status
	status.Started, status.Folder = last.Started, last.Folder
	os.Remove(filepath.Join(n.facts.Work, jobspec.ShellFile))
	if n.facts.Node == 0 { // the last to need it; where the platform owns the file, it stays
		os.Remove(filepath.Join(n.facts.Boot, jobspec.PrivateFile))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportLimit)
	defer cancel()
	err := n.report.final(ctx, status)
	if spent {
		os.RemoveAll(n.streams.dir)
		if err != nil { // on a full disk there is room for the report only now
			err = n.report.final(ctx, status)
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "qj-node: report the end: %v\n", err)
	}
	return status
}

// leaver is peers.leave: it ends what a node has to do with the others.
type leaver func(ctx context.Context, streams map[string]int64, complete bool) (map[string]int64, bool)

//go:build unix

package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"qj/jobspec"
	"qj/logsync"
	"qj/process"
)

// runGuard starts the lead, waits for it, and takes over if it is killed.
func runGuard(o Options) (int, error) {
	n, err := load(o)
	if err != nil {
		return exitSetup, err
	}
	lock, err := lockWork(o.Work)
	if err != nil {
		return exitSetup, err
	}
	if lock == nil {
		return 0, nil // this node of the run is up already: being started twice is no error
	}
	defer lock.Close()
	if n.report.resume() {
		return 0, nil
	}
	if err := process.BecomeSubreaper(); err != nil {
		return exitSetup, err
	}
	kids := newChildren()
	link, theirs, err := newPipeKeeper()
	if err != nil {
		return exitSetup, err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	pid, ended, err := startLead(o, kids, theirs)
	theirs.Close()
	if err != nil {
		return exitSetup, fmt.Errorf("start launcher: %w", err)
	}
	if err := noteProcesses(o.Work, pid); err != nil {
		return exitSetup, err
	}
	for {
		select {
		case <-signals: // a person or the platform wants the node to end: the lead knows how
			_ = syscall.Kill(pid, syscall.SIGTERM) // gone already is fine
		case e := <-ended:
			if n.report.resume() {
				return e.code(), nil
			}
			return n.takeOver(e, link), nil
		}
	}
}

// lockWork makes sure that one launcher runs the node. nil means that another one does.
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

// startLead starts this program again as the lead, with its end of the socket as descriptor 3.
func startLead(o Options, kids *children, socket *os.File) (int, <-chan exit, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, nil, err
	}
	argv := slices.Concat(o.program, []string{"lead"}, Args(o))
	return kids.start(argv, self, &os.ProcAttr{
		Env:   os.Environ(),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, socket},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
}

// noteProcesses writes down who runs the node, for the backend's liveness check and signals.
func noteProcesses(work string, lead int) error {
	var pair process.Pair
	var err error
	if pair.Guard, err = process.Self(); err != nil {
		return err
	}
	if pair.Lead, err = process.Of(lead); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	body, err := json.Marshal(pair)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(work, jobspec.ProcessesFile), body)
}

// takeOver ends the node in place of the lead: nothing that it started may live on, nothing that ranks
// wrote may be lost, and the record must say why.
func (n *node) takeOver(e exit, link *pipeKeeper) int {
	self := os.Getpid()
	process.End(context.Background(), 0, func() []int { return process.Descendants(self) })
	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	n.salvage(ctx, link.collected())
	why := fmt.Sprintf("the launcher ended with exit code %d before the run did", e.code())
	if e.status.Signaled() {
		s := e.status.Signal()
		why = fmt.Sprintf("the launcher was killed by signal %d (%s)", int(s), signalName(s))
	}
	status := jobspec.Status{
		State:  jobspec.Failed,
		Reason: jobspec.Reason{Code: jobspec.ReasonLauncherDied, Text: why},
		Ended:  e.at.UTC(),
	}
	n.end(ctx, status, alone{}.leave)
	return exitSetup
}

// salvage brings what is left in the pipes into the files and ships all of them.
func (n *node) salvage(ctx context.Context, pipes map[logsync.Stream]*os.File) {
	for _, id := range n.streams.onDisk() {
		st, err := n.streams.start(ctx, id, true)
		if err != nil {
			continue // the verdict matters more than one stream
		}
		if pipe := pipes[id]; pipe != nil {
			pipe.SetReadDeadline(time.Now().Add(outOfReach))
			if err := st.copyFrom(pipe); err != nil {
				fmt.Fprintf(st, "qj: %v\n", err)
			}
		}
	}
}

// end ships what is to be shipped, publishes the final status and removes what must not outlive the run.
func (n *node) end(ctx context.Context, status jobspec.Status, leave leaver) jobspec.Status {
	lengths, complete := n.streams.finish(ctx)
	status.Streams, status.LogsComplete = leave(ctx, lengths, complete)
	last := n.report.newest().Status
	status.Started, status.Folder = last.Started, last.Folder
	os.Remove(filepath.Join(n.options.Work, jobspec.ShellFile))
	if n.options.Node == 0 { // the last to need it; where the platform owns the file, it stays
		os.Remove(filepath.Join(n.options.Boot, jobspec.PrivateFile))
	}
	if err := n.report.final(ctx, status); err != nil {
		fmt.Fprintf(os.Stderr, "qj-node: report the end: %v\n", err)
	}
	if complete {
		os.RemoveAll(n.streams.dir)
	}
	return status
}

// leaver is peers.leave: it ends what a node has to do with the others.
type leaver func(ctx context.Context, streams map[string]int64, complete bool) (map[string]int64, bool)

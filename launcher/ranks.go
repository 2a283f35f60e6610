//go:build unix

package launcher

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"qj/jobspec"
	"qj/logsync"
	"qj/process"
)

// rank is one process of the job on this node.
type rank struct {
	place
	out    *stream
	pipe   *os.File      // the end that we read
	copied chan struct{} // closed when all that came is in the file
	ended  <-chan exit
}

// startRanks starts every rank of the node. A rank that cannot be started is a failed rank, with the
// exit code that a shell would give; the ones before it are returned to be stopped.
func (l *lead) startRanks(ctx context.Context, a agreed, dir string) ([]*rank, *jobspec.Status, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, fmt.Errorf("start ranks: %w", err)
	}
	defer null.Close()
	var started []*rank
	for local := range l.launch.Job.Layout.ProcsPerNode {
		at := place{node: l.facts.Node, local: local, layout: l.launch.Job.Layout}
		env := environ(l.inherited, l.launch, l.private, at, a)
		if local == 0 {
			if err := l.noteShell(dir, env); err != nil {
				return started, nil, err
			}
		}
		r, failed, err := l.startRank(ctx, at, null, dir, env)
		if r != nil {
			started = append(started, r)
		}
		if failed != nil || err != nil {
			return started, failed, err
		}
	}
	return started, nil, nil
}

func (l *lead) startRank(ctx context.Context, at place, null *os.File, dir string, env []string) (*rank, *jobspec.Status, error) {
	out, err := l.streams.start(ctx, logsync.Stream{Name: fmt.Sprintf("rank-%d", at.rank())}, at.rank() == 0)
	if err != nil {
		return nil, nil, err
	}
	command := l.launch.Job.Command
	path, err := lookPath(command[0], dir, env)
	if err != nil {
		return nil, l.cannotStart(at, out, err), nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("start rank %d: %w", at.rank(), err)
	}
	defer write.Close()
	widen(read)
	l.guard.keep(out.id, read) // before there is anything to lose
	_, ended, err := l.kids.start(command, path, &os.ProcAttr{
		Dir: dir, Env: env, Files: []*os.File{null, write, write}, Sys: childAttr(),
	})
	if err != nil {
		read.Close()
		return nil, l.cannotStart(at, out, err), nil
	}
	r := &rank{place: at, out: out, pipe: read, ended: ended, copied: make(chan struct{})}
	go func() {
		defer close(r.copied)
		out.copyFrom(read, l.tell)
	}()
	return r, nil, nil
}

// cannotStart is the end of a rank that never began: 127 when there is no such command, else 126.
func (l *lead) cannotStart(at place, out *stream, err error) *jobspec.Status {
	command := l.launch.Job.Command[0]
	code, why := 126, "cannot be executed: "+rootCause(err)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		code, why = 127, "command not found"
	}
	line := fmt.Sprintf("qj: %s: %s", command, why)
	fmt.Fprintln(out, line)
	return &jobspec.Status{
		State:  jobspec.Failed,
		Reason: jobspec.Reason{Code: jobspec.ReasonCommandNotFound, Text: fmt.Sprintf("rank %d: %s: %s", at.rank(), command, why)},
		Ended:  time.Now().UTC(),
		Exit:   &jobspec.Exit{Code: &code, Rank: at.rank(), Node: at.node, Lines: []string{line}},
	}
}

// rootCause drops the path that a PathError repeats.
func rootCause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return err.Error()
}

// rankEnd is the end of one rank.
type rankEnd struct {
	rank *rank
	exit exit
}

// watchRanks waits until every rank has ended and nothing that they started is left. The first rank that
// fails on its own stops the rest, and so do trouble on another node and the end of ctx. What is returned
// tells of a rank's own failure only, never of one that we stopped; nil means there was none.
func (l *lead) watchRanks(ctx context.Context, ranks []*rank) *jobspec.Status {
	ends := make(chan rankEnd, len(ranks))
	for _, r := range ranks {
		go func() { ends <- rankEnd{r, <-r.ended} }()
	}
	var first *jobspec.Status
	var swept, over <-chan struct{} // over is swept until it has been heard
	var stopped time.Time
	stop := func() {
		if swept == nil {
			stopped, swept = time.Now(), l.sweep()
			over = swept
		}
	}
	trouble, canceled := l.peers.trouble(), ctx.Done()
	var giveUp <-chan time.Time
	for left := len(ranks); left > 0; {
		select {
		case end := <-ends:
			left--
			// Who ended before we stopped anybody ended by itself, even if we hear of it later.
			alone := swept == nil || end.exit.at.Before(stopped)
			if end.exit.code() != 0 && alone && (first == nil || end.exit.at.Before(first.Ended)) {
				first = l.blame(end)
				l.peers.failed(*first)
				stop()
			}
		case <-trouble:
			trouble = nil
			stop()
		case <-canceled:
			canceled = nil
			stop()
		case <-over:
			over, giveUp = nil, time.After(time.Second) // the ends of those that were killed last
		case <-giveUp:
			l.logf("%d ranks cannot be killed; the run ends without them", left)
			return first
		}
	}
	stop() // what ranks left behind
	<-swept
	return first
}

// sweep ends every process below the launcher, with TERM, the grace period, then KILL.
func (l *lead) sweep() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		left := process.End(l.impatient, time.Duration(l.launch.Grace), family)
		if len(left) > 0 {
			l.logf("processes %v cannot be killed", left)
		}
	}()
	return done
}

// blame makes the verdict on the rank that failed first.
func (l *lead) blame(end rankEnd) *jobspec.Status {
	end.rank.out.eager.Store(true)
	code := end.exit.code()
	status := &jobspec.Status{
		State:  jobspec.Failed,
		Reason: jobspec.Reason{Code: jobspec.ReasonRankFailed, Text: fmt.Sprintf("rank %d exited with code %d", end.rank.rank(), code)},
		Ended:  end.exit.at.UTC(),
		Exit:   &jobspec.Exit{Code: &code, Rank: end.rank.rank(), Node: end.rank.node},
	}
	if end.exit.status.Signaled() {
		signal := end.exit.status.Signal()
		status.Exit.Signal = int(signal)
		status.Reason = jobspec.Reason{Code: jobspec.ReasonRankKilled,
			Text: fmt.Sprintf("rank %d was killed by signal %d (%s)", end.rank.rank(), int(signal), signalName(signal))}
	}
	return status
}

var signalNames = map[syscall.Signal]string{
	syscall.SIGKILL: "SIGKILL", syscall.SIGTERM: "SIGTERM", syscall.SIGINT: "SIGINT", syscall.SIGHUP: "SIGHUP",
	syscall.SIGSEGV: "SIGSEGV", syscall.SIGABRT: "SIGABRT", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE",
	syscall.SIGILL: "SIGILL", syscall.SIGQUIT: "SIGQUIT", syscall.SIGPIPE: "SIGPIPE", syscall.SIGUSR1: "SIGUSR1",
	syscall.SIGUSR2: "SIGUSR2", syscall.SIGXCPU: "SIGXCPU", syscall.SIGTRAP: "SIGTRAP",
}

func signalName(s syscall.Signal) string {
	if name := signalNames[s]; name != "" {
		return name
	}
	return s.String()
}

// outOfReach is how long the end of a pipe is waited for when everybody who could write to it is dead.
const outOfReach = 2 * time.Second

// drainRanks waits until the last byte of every rank is in its file. All writers are dead by now, or out
// of reach: those are not waited for.
func (l *lead) drainRanks(ranks []*rank) {
	for _, r := range ranks {
		r.pipe.SetReadDeadline(time.Now().Add(outOfReach))
		<-r.copied
		r.pipe.Close()
	}
}

// evidence adds the blamed rank's last lines, once they are all there.
func (l *lead) evidence(status *jobspec.Status) {
	if status.State != jobspec.Failed || status.Exit == nil || status.Exit.Code == nil || status.Exit.Lines != nil || status.Exit.Node != l.facts.Node {
		return
	}
	status.Exit.Lines = l.streams.lastLines(logsync.Stream{Name: fmt.Sprintf("rank-%d", status.Exit.Rank)}, blamedLines)
}

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) } // gone already is fine

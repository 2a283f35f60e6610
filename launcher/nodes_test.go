//go:build linux

package launcher

import (
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"qj/blob"
	"qj/jobspec"
)

// onNodes is a run of two ranks on each of some nodes, which are not started yet.
func onNodes(t *testing.T, nodes int, command ...string) *run {
	r := newRun(t, command...)
	r.launch.Job.Layout = jobspec.Layout{Nodes: nodes, ProcsPerNode: 2}
	r.writeBoot()
	return r
}

func TestTwoNodesMeet(t *testing.T) {
	r := onNodes(t, 2, rankCommand("meet")...)
	second, first := r.startNode(1), r.startNode(0) // the order must not matter
	for _, n := range []*testNode{first, second} {
		if code := n.wait(); code != 0 {
			t.Errorf("node %d: exit code %d", n.node, code)
		}
		n.wantEnd(jobspec.Completed, "")
		wantGone(t, filepath.Join(r.work(n.node), "streams"))
	}
	logs := r.logs()
	master, _, _ := strings.Cut(logs["0/rank-0"], " ")
	for rank := range 4 {
		if got, want := logs[fmt.Sprintf("0/rank-%d", rank)], fmt.Sprintf("%s %d/4", master, rank); got != want {
			t.Errorf("rank %d says %q, want %q", rank, got, want)
		}
	}
	if host, port, err := net.SplitHostPort(master); err != nil || host != "127.0.0.1" || port == "0" {
		t.Errorf("ranks meet at %q", master)
	}
	r.wantLengths(first.report().Status, logs) // node 0 speaks for all
}

func TestNodesShareTheGPUs(t *testing.T) {
	r := onNodes(t, 2, "/bin/sh", "-c", `printf %s "$CUDA_VISIBLE_DEVICES"`)
	r.launch.Job.Layout.GPUsPerNode = 2
	r.launch.Slots = &jobspec.Slots{Dir: t.TempDir(), Ticket: "1", Need: 4, GPUs: true}
	r.writeBoot()
	fakeNvidia(t, r, fourGPUs, "")
	for _, n := range []*testNode{r.startNode(0), r.startNode(1)} {
		if code := n.wait(); code != 0 {
			t.Errorf("node %d: exit code %d", n.node, code)
		}
	}
	logs := r.logs()
	for rank, want := range []string{"0,1", "0,1", "2,3", "2,3"} {
		if got := logs[fmt.Sprintf("0/rank-%d", rank)]; got != want {
			t.Errorf("rank %d has GPUs %q, want %q", rank, got, want)
		}
	}
}

func TestFailureOnAnotherNodeStopsAll(t *testing.T) {
	for rank := range 4 {
		t.Run(fmt.Sprintf("rank %d", rank), func(t *testing.T) {
			r := onNodes(t, 2, rankCommand("only", fmt.Sprint(rank), "print", "7")...)
			for _, n := range []*testNode{r.startNode(0), r.startNode(1)} {
				if code := n.wait(); code != 7 {
					t.Errorf("node %d: exit code %d, want 7", n.node, code)
				}
				status := n.wantEnd(jobspec.Failed, jobspec.ReasonRankFailed)
				if e := status.Exit; e == nil || e.Rank != rank || e.Node != rank/2 || len(e.Lines) == 0 {
					t.Errorf("node %d blames %.200q, want rank %d", n.node, fmt.Sprint(e), rank)
				}
			}
			r.wantNothingLeft()
			r.wantLengths(r.nodes[0].report().Status, r.logs())
		})
	}
}

// A node that cannot be set up ends the run at once: nobody waits for it as if it could still come.
func TestSetUpFailureOnAnotherNode(t *testing.T) {
	for failing := range 2 {
		t.Run(fmt.Sprintf("node %d", failing), func(t *testing.T) {
			r := onNodes(t, 2, "true")
			r.launch.JoinTimeout = jobspec.Duration(time.Hour)
			r.writeBoot()
			if err := os.MkdirAll(filepath.Join(r.work(failing), "code", "mine"), 0o755); err != nil { // no launcher's
				t.Fatal(err)
			}
			for _, n := range []*testNode{r.startNode(0), r.startNode(1)} {
				if code := n.wait(); code != exitSetup {
					t.Errorf("node %d: exit code %d, want %d", n.node, code, exitSetup)
				}
				status := n.wantEnd(jobspec.Failed, jobspec.ReasonSetupFailed)
				if status.Exit == nil || status.Exit.Node != failing || !strings.Contains(status.Reason.Text, "unpack code") {
					t.Errorf("node %d blames %+v (%s), want node %d", n.node, status.Exit, status.Reason.Text, failing)
				}
			}
		})
	}
}

func TestNodeThatNeverComes(t *testing.T) {
	r := onNodes(t, 3, "true")
	r.launch.JoinTimeout = jobspec.Duration(300 * time.Millisecond)
	r.writeBoot()
	n := r.startNode(0)
	if code := n.wait(); code != exitNodesMissing {
		t.Errorf("exit code %d, want %d", code, exitNodesMissing)
	}
	status := n.wantEnd(jobspec.Failed, jobspec.ReasonNodesMissing)
	if want := "waited 300ms for node 1, 2 of 3"; status.Reason.Text != want {
		t.Errorf("reason is %q, want %q", status.Reason.Text, want)
	}
}

func TestNodeZeroNeverComes(t *testing.T) {
	r := onNodes(t, 2, "true")
	r.launch.JoinTimeout = jobspec.Duration(300 * time.Millisecond)
	r.writeBoot()
	n := r.startNode(1)
	if code := n.wait(); code != exitNodesMissing {
		t.Errorf("exit code %d, want %d", code, exitNodesMissing)
	}
	status := n.wantEnd(jobspec.Failed, jobspec.ReasonNodesMissing)
	if want := "waited 300ms for node 0 of 2 (last: node 0 has not reported yet)"; status.Reason.Text != want {
		t.Errorf("reason is %q, want %q", status.Reason.Text, want)
	}
}

func TestNodeIsLost(t *testing.T) {
	r := onNodes(t, 2, rankCommand("deaf")...)
	r.launch.Grace = jobspec.Duration(50 * time.Millisecond)
	r.writeBoot()
	first, second := r.startNode(0), r.startNode(1)
	first.await(jobspec.Running)
	second.await(jobspec.Running)
	kill(t, second)
	if code := first.wait(); code != exitSetup {
		t.Errorf("exit code %d, want %d", code, exitSetup)
	}
	status := first.wantEnd(jobspec.Failed, jobspec.ReasonNodeLost)
	if !strings.HasPrefix(status.Reason.Text, "lost node 1 (") || status.Exit == nil || status.Exit.Node != 1 {
		t.Errorf("reason is %q, exit %+v", status.Reason.Text, status.Exit)
	}
	if status.LogsComplete {
		t.Error("the logs of a node that is lost are said to be complete")
	}
	await(t, "the end of all ranks", func() bool { return len(r.left()) == 0 })
}

func TestNodeZeroIsLost(t *testing.T) {
	r := onNodes(t, 2, rankCommand("sleep")...)
	first, second := r.startNode(0), r.startNode(1)
	first.await(jobspec.Running)
	second.await(jobspec.Running)
	kill(t, first)
	if code := second.wait(); code != exitSetup {
		t.Errorf("exit code %d, want %d", code, exitSetup)
	}
	if status := second.wantEnd(jobspec.Failed, jobspec.ReasonNodeLost); status.Reason.Text != "lost node 0" {
		t.Errorf("reason is %q", status.Reason.Text)
	}
	await(t, "the end of all ranks", func() bool { return len(r.left()) == 0 })
}

func TestTermOnOneNodeEndsTheRun(t *testing.T) {
	for told := range 2 {
		r := onNodes(t, 2, rankCommand("sleep")...)
		nodes := []*testNode{r.startNode(0), r.startNode(1)}
		nodes[0].await(jobspec.Running)
		nodes[1].await(jobspec.Running)
		if err := nodes[told].guard.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			if code := n.wait(); code != exitPreempted {
				t.Errorf("node %d: exit code %d, want %d", n.node, code, exitPreempted)
			}
			if status := n.wantEnd(jobspec.Preempted, jobspec.ReasonTerminated); status.Exit == nil || status.Exit.Node != told {
				t.Errorf("node %d blames %+v, want node %d", n.node, status.Exit, told)
			}
		}
		r.wantNothingLeft()
	}
}

// Only who has the run's key is one of its nodes. Whoever else connects does not disturb it.
func TestStrangersAreRefused(t *testing.T) {
	r := onNodes(t, 2, "true")
	first := r.startNode(0)
	var address string
	await(t, "node 0's address", func() bool { address = first.report().Address; return address != "" })
	silent, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() // at the very end: nobody waits for it
	talking, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer talking.Close()
	if _, err := talking.Write([]byte(`{"kind":"hello","node":1}` + "\n")); err != nil {
		t.Fatal(err)
	}

	stranger := onNodes(t, 2, "true")
	stranger.launch.Run, stranger.launch.Store = r.launch.Run, r.launch.Store
	stranger.launch.JoinTimeout = jobspec.Duration(300 * time.Millisecond)
	stranger.private.Key = jobspec.Secret(hex.EncodeToString(make([]byte, 32)))
	stranger.writeBoot()
	n := stranger.startNode(1)
	if code := n.wait(); code != exitNodesMissing {
		t.Errorf("a node with another key: exit code %d, want %d", code, exitNodesMissing)
	}
	if text := n.report().Status.Reason.Text; !strings.Contains(text, "certificate") {
		t.Errorf("it says %q, want the reason", text)
	}

	second := r.startNode(1)
	if code := second.wait(); code != 0 {
		t.Errorf("exit code %d of the true node 1", code)
	}
	if code := first.wait(); code != 0 {
		t.Errorf("exit code %d of node 0", code)
	}
	log, err := blob.ReadAll(t.Context(), r.store, r.prefix()+"/logs/0/launcher-0/00000000000000000000", 1<<20)
	if err != nil || !strings.Contains(string(log), "refuse a connection from 127.0.0.1") {
		t.Errorf("node 0 does not tell of the strangers: %q, %v", log, err)
	}
}

func TestSecondNodeOfTheSameNumber(t *testing.T) {
	r := onNodes(t, 2, rankCommand("sleep")...)
	first, second := r.startNode(0), r.startNode(1)
	first.await(jobspec.Running)
	double := onNodes(t, 2, "true")
	double.launch, double.private = r.launch, r.private
	double.launch.JoinTimeout = jobspec.Duration(300 * time.Millisecond)
	double.writeBoot()
	n := double.startNode(1)
	if code := n.wait(); code != exitNodesMissing {
		t.Errorf("a second node 1 ended with %d, want %d", code, exitNodesMissing)
	}
	if state := first.report().Status.State; state != jobspec.Running {
		t.Errorf("a second node 1 made the run %s", state)
	}
	if err := second.guard.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := first.wait(); code != exitPreempted {
		t.Errorf("exit code %d, want %d", code, exitPreempted)
	}
	second.wait()
}

//go:build linux

package launcher

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"qj/blob"
	"qj/blob/file"
	"qj/jobspec"
	"qj/logsync"
	"qj/process"
	"qj/snapshot"
	"qj/statefile"
)

// patience bounds every wait of these tests; it is reached only by one that fails.
const patience = 40 * time.Second

// await waits for something that no event tells of.
func await(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !happened(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}

// run is one run of a job: a store with a tiny snapshot, a boot folder, and a work folder for each node.
type run struct {
	t       *testing.T
	dir     string
	store   *file.Store
	launch  jobspec.Launch
	private jobspec.Private
	environ []string
	nodes   []*testNode
}

var runs atomic.Int64

func newRun(t *testing.T, command ...string) *run {
	t.Helper()
	dir := t.TempDir()
	store, err := file.Open(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	r := &run{
		t: t, dir: dir, store: store,
		environ: append(os.Environ(), "GORACE=atexit_sleep_ms=0"),
		private: jobspec.Private{Key: jobspec.Secret(hex.EncodeToString(bytes.Repeat([]byte{7}, 32)))},
		launch: jobspec.Launch{
			Format: jobspec.Format,
			Run:    jobspec.NewRunID("tester", time.Now(), [4]byte{byte(os.Getpid() >> 8), byte(os.Getpid()), 0, byte(runs.Add(1))}),
			User:   "tester",
			Job:    jobspec.Job{Command: command, Code: upload(t, store), Layout: jobspec.Layout{Nodes: 1, ProcsPerNode: 1}},
			Store:  jobspec.StoreRef{Type: "file", Path: store.Root()},
			Grace:  jobspec.Duration(200 * time.Millisecond), JoinTimeout: jobspec.Duration(time.Minute),
		},
	}
	t.Cleanup(r.end)
	return r
}

// upload makes a snapshot of a tiny tree.
func upload(t *testing.T, store blob.Store) jobspec.Code {
	t.Helper()
	root := t.TempDir()
	for name, mode := range map[string]os.FileMode{"train.py": 0o644, "tool.sh": 0o755, "sub/notes.txt": 0o644} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := snapshot.Scan(root, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Upload(t.Context(), store, tree, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return jobspec.Code{Snapshot: s.ID, Manifest: s.Manifest}
}

func (r *run) boot() string         { return filepath.Join(r.dir, "boot") }
func (r *run) work(node int) string { return filepath.Join(r.dir, "node-"+strconv.Itoa(node)) }
func (r *run) prefix() string       { return "runs/" + string(r.launch.Run) }

// writeBoot makes what a backend puts on every node.
func (r *run) writeBoot() {
	r.t.Helper()
	launch, err := json.Marshal(r.launch)
	if err != nil {
		r.t.Fatal(err)
	}
	private, err := r.private.Reveal()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.MkdirAll(r.boot(), 0o700); err != nil {
		r.t.Fatal(err)
	}
	for name, body := range map[string][]byte{jobspec.LaunchFile: launch, jobspec.PrivateFile: private} {
		if err := os.WriteFile(filepath.Join(r.boot(), name), body, 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
}

// start writes the boot folder and starts the first node.
func (r *run) start() *testNode {
	r.t.Helper()
	r.writeBoot()
	return r.startNode(0)
}

// testNode is one launcher, as its cluster sees it.
type testNode struct {
	*run
	node   int
	guard  *exec.Cmd
	stderr string // a file: the lead has it too, and may live longer
	ended  chan struct{}
}

func (r *run) startNode(node int) *testNode {
	r.t.Helper()
	n := &testNode{run: r, node: node, stderr: filepath.Join(r.dir, fmt.Sprintf("stderr-%d", len(r.nodes))), ended: make(chan struct{})}
	options := facts{Boot: r.boot(), Work: r.work(node), Node: node, Master: "127.0.0.1"}
	n.guard = exec.Command(os.Args[0], append([]string{"qj-node", "run"}, arguments(options)...)...)
	stderr, err := os.Create(n.stderr)
	if err != nil {
		r.t.Fatal(err)
	}
	defer stderr.Close()
	n.guard.Env, n.guard.Dir, n.guard.Stderr = r.environ, "/", stderr
	if err := n.guard.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.nodes = append(r.nodes, n)
	go func() {
		defer close(n.ended)
		_ = n.guard.Wait() // code tells how it ended
	}()
	return n
}

// end removes what a test left, and fails it if the race detector saw something in a launcher.
func (r *run) end() {
	for _, n := range r.nodes {
		var pair process.Pair
		if statefile.ReadJSON(filepath.Join(r.work(n.node), jobspec.ProcessesFile), &pair) == nil {
			_ = pair.Lead.Signal(syscall.SIGKILL)
		}
		_ = n.guard.Process.Kill()
		<-n.ended
		said, err := os.ReadFile(n.stderr)
		if err != nil || bytes.Contains(said, []byte("DATA RACE")) || bytes.Contains(said, []byte("panic:")) || r.t.Failed() {
			r.t.Errorf("node %d said on stderr: %s %v", n.node, said, err)
		}
	}
	process.End(r.t.Context(), 0, r.left)
}

// left lists every process that belongs to the run and is none of its launchers.
func (r *run) left() []int { return process.WithEnv(jobspec.EnvRunID, string(r.launch.Run)) }

func (r *run) wantNothingLeft() {
	r.t.Helper()
	if pids := r.left(); len(pids) > 0 {
		r.t.Errorf("processes %v of the run are still there", pids)
	}
}

// wait returns the exit code of the guard, and of the whole node if nobody killed the guard.
func (n *testNode) wait() int {
	n.t.Helper()
	select {
	case <-n.ended:
	case <-time.After(patience):
		report, _ := os.ReadFile(filepath.Join(n.work(n.node), jobspec.ReportFile))
		n.t.Fatalf("node %d has not ended after %s: %s", n.node, patience, report)
	}
	status := n.guard.ProcessState.Sys().(syscall.WaitStatus)
	return exit{status: status}.code()
}

// processes waits until the node has written down who runs it.
func (n *testNode) processes() process.Pair {
	n.t.Helper()
	var pair process.Pair
	await(n.t, "the node's processes", func() bool {
		return statefile.ReadJSON(filepath.Join(n.work(n.node), jobspec.ProcessesFile), &pair) == nil && pair.Lead.PID > 0
	})
	return pair
}

// await waits until the node is in that state, and returns its report.
func (n *testNode) await(state jobspec.State) jobspec.Report {
	n.t.Helper()
	var report jobspec.Report
	await(n.t, "state "+string(state), func() bool {
		report = n.report()
		return report.Status.State == state
	})
	return report
}

// report is the node's newest, zero if there is none.
func (n *testNode) report() jobspec.Report {
	var report jobspec.Report
	if err := statefile.ReadJSON(filepath.Join(n.work(n.node), jobspec.ReportFile), &report); err != nil {
		return jobspec.Report{}
	}
	return report
}

// stored is the node's report in the store.
func (n *testNode) stored() jobspec.Report {
	n.t.Helper()
	body, err := blob.ReadAll(n.t.Context(), n.store, fmt.Sprintf("%s/nodes/%d.json", n.prefix(), n.node), 1<<20)
	if err != nil {
		n.t.Fatal(err)
	}
	var report jobspec.Report
	if err := json.Unmarshal(body, &report); err != nil {
		n.t.Fatal(err)
	}
	return report
}

// wantEnd compares the end of a node, here and in the store, and returns its status.
func (n *testNode) wantEnd(state jobspec.State, reason jobspec.ReasonCode) jobspec.Status {
	n.t.Helper()
	status := n.report().Status
	if status.State != state || status.Reason.Code != reason {
		n.t.Errorf("node %d ended as %s (%s: %s), want %s (%s)", n.node, status.State, status.Reason.Code, status.Reason.Text, state, reason)
	}
	if stored := n.stored().Status; stored.State != status.State || stored.Reason != status.Reason {
		n.t.Errorf("the store tells of node %d: %s (%v), its own file: %s (%v)", n.node, stored.State, stored.Reason, status.State, status.Reason)
	}
	if status.Ended.IsZero() {
		n.t.Errorf("node %d does not tell when it ended", n.node)
	}
	return status
}

// logs fetches every stream from the store.
func (r *run) logs() map[string]string {
	r.t.Helper()
	pulled, err := logsync.Pull(r.t.Context(), r.store, r.prefix(), r.t.TempDir(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	logs := map[string]string{}
	for _, p := range pulled {
		body, err := os.ReadFile(p.Path)
		if err != nil {
			r.t.Fatal(err)
		}
		logs[p.Stream.String()] = string(body)
	}
	return logs
}

// wantLengths checks that the lengths in the status are those of the streams in the store.
func (r *run) wantLengths(status jobspec.Status, logs map[string]string) {
	r.t.Helper()
	got := map[string]int64{}
	for name, text := range logs {
		got[name] = int64(len(text))
	}
	known := maps.Clone(status.Streams)
	maps.DeleteFunc(known, func(_ string, length int64) bool { return length == 0 }) // nothing to store
	if !maps.Equal(got, known) || !status.LogsComplete {
		r.t.Errorf("the store holds streams of lengths %v, the status says %v (complete: %v)", got, status.Streams, status.LogsComplete)
	}
}

// counted is how many lines the count mode of a rank has written; 0 if it has not begun.
func (r *run) counted(rank int) int {
	text, _ := os.ReadFile(fmt.Sprintf("%s.%d", r.counter(), rank)) // not there: 0
	n, _ := strconv.Atoi(string(text))
	return n
}

func (r *run) counter() string { return filepath.Join(r.dir, "counter") }

// wantCounted checks that the store has every line that the rank wrote, and nothing else.
func (r *run) wantCounted(logs map[string]string, rank int) {
	r.t.Helper()
	lines := strings.SplitAfter(logs[fmt.Sprintf("0/rank-%d", rank)], "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return l == "" })
	if written := r.counted(rank); len(lines) < written || written == 0 {
		r.t.Errorf("rank %d wrote %d lines, the store has %d", rank, written, len(lines))
	}
	for i, line := range lines {
		if line != fmt.Sprintf("line %d\n", i+1) {
			r.t.Fatalf("line %d of rank %d is %q", i+1, rank, line)
		}
	}
}

// wantGone checks that nothing is at the paths.
func wantGone(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
}

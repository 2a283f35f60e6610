package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"qj/process"
)

// desk is one person's home and project folder.
type desk struct {
	t       *testing.T
	qj      string
	home    string
	project string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	qj := os.Getenv("QJ_BIN")
	if qj == "" {
		t.Fatal("QJ_BIN does not name the built qj: run `make test`, or set it to bin/qj after `make build`")
	}
	d := &desk{t: t, qj: qj, home: filepath.Join(t.TempDir(), "home"), project: filepath.Join(t.TempDir(), "project")}
	for _, dir := range []string{d.home, d.project} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(d.endAll)
	return d
}

// endAll makes sure that a failed test leaves no process.
func (d *desk) endAll() {
	folders, _ := filepath.Glob(filepath.Join(d.runs(), "*"))
	for _, folder := range folders {
		process.End(d.t.Context(), 0, func() []int { return process.WithEnv("QJ_RUN_ID", filepath.Base(folder)) })
	}
}

func (d *desk) runs() string { return filepath.Join(d.home, ".local/state/qj/local/runs") }

// code is the folder in which the run's ranks start.
func (d *desk) code(id string) string { return filepath.Join(d.runs(), id, "node-0", "code") }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// command is qj as started from the project folder.
func (d *desk) command(args ...string) *exec.Cmd {
	cmd := exec.Command(d.qj, args...)
	cmd.Dir = d.project
	cmd.Env = append(os.Environ(), "HOME="+d.home, "USER=ada", "QJ_CLUSTER=",
		"XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME=", "AML_LOG_FOLDER=", "AML_CONFIG_PATH=")
	return cmd
}

// run runs qj to its end and returns its stdout, its stderr and its exit code.
func (d *desk) run(args ...string) (stdout, stderr string, code int) {
	d.t.Helper()
	var out, errs bytes.Buffer
	cmd := d.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	limit := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
	defer limit.Stop()
	_ = cmd.Wait() // the exit code tells
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// must is run for what has to succeed.
func (d *desk) must(args ...string) string {
	d.t.Helper()
	stdout, stderr, code := d.run(args...)
	if code != 0 {
		d.t.Fatalf("qj %s: exit code %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return strings.TrimSpace(stdout)
}

// write puts a file into the project.
func (d *desk) write(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.project, name), []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// shown is what the tests read of a run.
type shown struct {
	ID         string `json:"id"`
	Suffix     string `json:"suffix"`
	State      string `json:"state"`
	Reason     string `json:"reason"`
	ReasonText string `json:"reason_text"`
	Exit       *struct {
		Code   *int     `json:"code"`
		Rank   int      `json:"rank"`
		Signal int      `json:"signal"`
		Lines  []string `json:"lines"`
	} `json:"exit"`
	Logs []struct {
		Stream string `json:"stream"`
		Path   string `json:"path"`
	} `json:"logs"`
}

// query is qj q -o json.
func (d *desk) query(args ...string) []shown {
	d.t.Helper()
	var list []shown
	out := d.must(append([]string{"-o", "json", "q"}, args...)...)
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		d.t.Fatalf("parse %s: %v", out, err)
	}
	return list
}

// eventually waits until ok holds; the bound is for a machine in trouble, not a figure.
func (d *desk) eventually(what string, ok func() bool) {
	d.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			d.t.Fatalf("%s: not within a minute", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// log is what a rank of the run has written so far.
func (d *desk) log(id string, rank string) string {
	d.t.Helper()
	stdout, _, _ := d.run("logs", "--rank", rank, id)
	return stdout
}

// pair reads who runs the run's first node.
func (d *desk) pair(id string) process.Pair {
	d.t.Helper()
	var pair process.Pair
	d.eventually("the launcher names itself", func() bool {
		body, err := os.ReadFile(filepath.Join(d.runs(), id, "node-0", "processes.json"))
		return err == nil && json.Unmarshal(body, &pair) == nil
	})
	return pair
}

// left lists the processes that carry the run's id.
func left(id string) []int { return process.WithEnv("QJ_RUN_ID", id) }

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %d: %v", pid, err)
	}
}

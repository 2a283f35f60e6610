//go:build unix

package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"qj/jobspec"
	"qj/process"
	"qj/statefile"
)

// folder is all that there is of a run on this machine:
//
//	boot/       the launch plan, how each node is started, private values (0600)
//	node-<n>/   the launcher's work folder; starter.json and node.out are ours
type folder struct {
	dir string
	id  jobspec.RunID
}

func (f folder) boot() string         { return filepath.Join(f.dir, "boot") }
func (f folder) node(node int) string { return filepath.Join(f.dir, fmt.Sprintf("node-%d", node)) }
func (f folder) starter(n int) string { return filepath.Join(f.node(n), "starter.json") }
func (f folder) out(n int) string     { return filepath.Join(f.node(n), "node.out") }

// nodes counts the nodes of the plan.
func (f folder) nodes() int {
	n := 0
	for {
		if _, err := os.Stat(filepath.Join(f.boot(), startDocument(n))); err != nil {
			return n
		}
		n++
	}
}

// known says whether a node has been started.
func (f folder) known(node int) bool {
	for _, path := range []string{f.starter(node), filepath.Join(f.node(node), jobspec.ProcessesFile)} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// start starts a node in a session of its own, with nothing that ties it to this process or its terminal.
func (b *Backend) start(f folder, node int, document []byte) error {
	var s start
	if err := json.Unmarshal(document, &s); err != nil || len(s.Argv) == 0 {
		return fmt.Errorf("start node %d: the plan has no command line", node)
	}
	if err := os.MkdirAll(f.node(node), 0o700); err != nil {
		return fmt.Errorf("start node %d: %w", node, err)
	}
	out, err := os.OpenFile(f.out(node), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("start node %d: %w", node, err)
	}
	defer out.Close()
	cmd := exec.Command(s.Argv[0], s.Argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Dir = "/" // keeps no mount busy
	cmd.Env = append(b.o.Environ[:len(b.o.Environ):len(b.o.Environ)], jobspec.EnvRunID+"="+string(f.id))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	keepToOurselves()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start node %d: %w", node, err)
	}
	id, err := process.Of(cmd.Process.Pid)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("start node %d: %w", node, err)
	}
	if err := statefile.WriteJSON(f.starter(node), id); err != nil {
		return fmt.Errorf("start node %d: %w", node, err)
	}
	return cmd.Process.Release() // from here on it is nobody's child
}

// keepToOurselves makes sure that a run inherits no file that this process was started with: a lock or a
// pipe of somebody's shell would be held as long as the run lives.
func keepToOurselves() {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return // nothing to go by; then the run holds them
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// awaitPlace waits until node 0 stands in the queue for slots, or is past it, so that a run that is
// submitted later stands behind it. A launcher that is slow to come up loses that promise, not its place.
func (f folder) awaitPlace(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(filepath.Join(f.node(0), jobspec.ReportFile)); err == nil {
			return
		}
		if alive, _, err := f.alive(0); err != nil || !alive {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// alive says whether anything runs the node, and whether the machine is still the same boot.
func (f folder) alive(node int) (alive, sameBoot bool, err error) {
	var pair process.Pair
	err = statefile.ReadJSON(filepath.Join(f.node(node), jobspec.ProcessesFile), &pair)
	if errors.Is(err, fs.ErrNotExist) {
		err = statefile.ReadJSON(f.starter(node), &pair.Guard)
	}
	if err != nil {
		return false, false, err
	}
	return pair.Guard.Alive() || pair.Lead.Alive(), pair.Guard.SameBoot(), nil
}

// status is what node 0 says of the run, as long as there is somebody to say it.
func (f folder) status() (jobspec.Status, error) {
	alive, sameBoot, err := f.alive(0) // before the report is read: the launcher reports its end, then ends
	if err != nil {
		return jobspec.Status{}, err
	}
	var report jobspec.Report
	err = statefile.ReadJSON(filepath.Join(f.node(0), jobspec.ReportFile), &report)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return jobspec.Status{}, err
	}
	status := report.Status
	switch {
	case status.State.Ended():
		status.Raw = "exited"
	case alive:
		status.Raw = "alive"
		if status.State == "" {
			status.State = jobspec.Preparing
		}
	default:
		status = f.died(report, sameBoot)
	}
	return status, nil
}

// died is the end of a run whose launcher cannot report it any more.
func (f folder) died(report jobspec.Report, sameBoot bool) jobspec.Status {
	status := report.Status
	status.State, status.Raw, status.Ended = jobspec.Failed, "dead", report.At
	switch {
	case !sameBoot:
		status.Reason = jobspec.Reason{Code: jobspec.ReasonRebooted, Text: "the machine was restarted while the run was on it"}
	case report.At.IsZero():
		status.Ended = modified(f.out(0))
		status.Reason = jobspec.Reason{Code: jobspec.ReasonLauncherDied, Text: "the launcher could not start: " + lastLine(f.out(0))}
	default:
		status.Reason = jobspec.Reason{Code: jobspec.ReasonLauncherDied, Text: "the launcher and its guard were killed"}
	}
	return status
}

// damaged is the end of a run whose files here cannot be read, as after a power cut.
func (f folder) damaged(err error) jobspec.Status {
	return jobspec.Status{State: jobspec.Failed, Raw: "damaged", Ended: modified(f.out(0)),
		Reason: jobspec.Reason{Code: jobspec.ReasonLauncherDied, Text: "its files on this machine are damaged: " + err.Error()}}
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime().UTC()
}

// lastLine is the end of a small file, for an error message.
func lastLine(path string) string {
	body, err := os.ReadFile(path)
	body = bytes.TrimSpace(body)
	if err != nil || len(body) == 0 {
		return "it said nothing"
	}
	return string(body[bytes.LastIndexByte(body, '\n')+1:])
}

// forget removes the private values, once no launcher is left to do it.
func (f folder) forget() error {
	err := os.Remove(filepath.Join(f.boot(), jobspec.PrivateFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove private values: %w", err)
	}
	return nil
}

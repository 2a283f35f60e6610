//go:build unix

package local

import (
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
	if err == nil || errors.Is(err, fs.ErrNotExist) { // gone already: its output tells why
		err = statefile.WriteJSON(f.starter(node), id)
	}
	if err != nil { // nobody could find it again
		return errors.Join(fmt.Errorf("start node %d: %w", node, err), cmd.Process.Kill(), ignoreExit(cmd.Wait()))
	}
	return cmd.Process.Release() // from here on it is nobody's child
}

// ignoreExit drops the news that a process that was killed did not end well.
func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
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
		if pair, err := f.pair(0); err != nil || !alive(pair) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// forget removes what is private, once no launcher is left to do it.
func (f folder) forget() error {
	private := []string{filepath.Join(f.boot(), jobspec.PrivateFile)}
	for node := range f.nodes() {
		private = append(private, filepath.Join(f.node(node), jobspec.ShellFile))
	}
	for _, path := range private {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove private values: %w", err)
		}
	}
	return nil
}

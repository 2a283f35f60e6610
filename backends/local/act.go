//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"qj/backends"
	"qj/jobspec"
	"qj/process"
	"qj/statefile"
)

// Cancel asks every launcher of the run to stop. Of a run that nobody runs any more it ends what is left.
func (b *Backend) Cancel(ctx context.Context, h jobspec.Handle) error {
	f := b.folder(jobspec.RunID(h))
	started, asked := false, false
	var failed []error
	for node := range f.nodes() {
		pair, err := f.pair(node)
		if errors.Is(err, fs.ErrNotExist) {
			continue // not started yet, or never
		}
		started = true
		if err != nil && !errors.Is(err, statefile.ErrDamaged) { // of a damaged file, the sweep finds whom it named
			return fmt.Errorf("stop run: %w", err)
		}
		if host := elsewhere(pair); host != "" {
			return fmt.Errorf("stop run: it is on %s, and can be stopped from there only", host)
		}
		for _, p := range []process.ID{pair.Guard, pair.Lead} {
			if p.Alive() {
				asked = true
				failed = append(failed, p.Signal(syscall.SIGTERM))
				break // the guard tells the lead
			}
		}
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("stop run: %w", err)
	}
	if asked || !started { // whoever is about to start it sees that it is not wanted any more
		return nil
	}
	return errors.Join(sweep(ctx, f.id), f.forget())
}

// sweep kills what a run left whose launcher and guard were killed together: all that it started still
// carries its id in the environment.
func sweep(ctx context.Context, id jobspec.RunID) error {
	left := process.End(ctx, 0, func() []int { return process.WithEnv(jobspec.EnvRunID, string(id)) })
	if len(left) > 0 {
		return fmt.Errorf("stop run: processes %v cannot be killed", left)
	}
	return nil
}

// Shell runs a command, or an interactive shell, in the folder and environment of the node's first rank.
func (b *Backend) Shell(ctx context.Context, h jobspec.Handle, s backends.Shell) (int, error) {
	f := b.folder(jobspec.RunID(h))
	status, err := f.status()
	if err != nil {
		return 0, fmt.Errorf("open shell: %w", err)
	}
	pair, err := f.pair(s.Node)
	if err != nil {
		return 0, fmt.Errorf("open shell: %w", err)
	}
	if host := elsewhere(pair); host != "" {
		return 0, fmt.Errorf("open shell: the run is on %s, and can be entered from there only", host)
	}
	if status.State.Ended() || !alive(pair) {
		return 0, fmt.Errorf("open shell: nothing of the run is left on this machine; its files are in %s", f.node(s.Node))
	}
	argv := append(append([]string{}, b.o.Launcher...), "shell", "--work", f.node(s.Node))
	if len(s.Command) > 0 {
		argv = append(append(argv, "--"), s.Command...)
	}
	if b.o.Image != "" {
		argv = b.inContainer(f.id, s, argv)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.Stdin, s.Stdout, s.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return 128 + int(ws.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	return 0, err
}

func containerName(id jobspec.RunID, node int) string {
	return "qj-" + string(id) + "-" + strconv.Itoa(node)
}

// container wraps a launcher's command line. The container shares the machine's processes, network, name
// and shared memory, and sees the folders that the launcher needs under the same paths: to everybody outside,
// the launcher inside is one like any other.
func (b *Backend) container(t backends.Task, node int, launcher []string) []string {
	argv := []string{b.o.Runtime, "run", "--rm", "--name", containerName(t.Run.ID, node),
		"--network", "host", "--ipc", "host", "--pid", "host", "--uts", "host", "--user", b.o.User,
		"--volume", b.o.Dir + ":" + b.o.Dir,
		"--volume", launcher[0] + ":" + launcher[0] + ":ro", // its folder may be one that the image needs
	}
	if t.Launch.Store.Path != "" {
		argv = append(argv, "--volume", t.Launch.Store.Path+":"+t.Launch.Store.Path)
	}
	for _, m := range t.Launch.Job.Mounts {
		argv = append(argv, "--volume", m.Path+":"+m.Path)
	}
	if t.Launch.Job.Layout.GPUsPerNode > 0 && t.Facts[factGPUs] != "" && t.Facts[factGPUs] != "0" {
		argv = append(argv, "--gpus", "all") // the launcher inside chooses, as it does outside
	}
	argv = append(argv, "--env", jobspec.EnvRunID+"="+string(t.Run.ID), "--entrypoint", launcher[0], b.o.Image)
	return append(argv, launcher[1:]...)
}

// inContainer wraps the command line of a shell.
func (b *Backend) inContainer(id jobspec.RunID, s backends.Shell, argv []string) []string {
	wrapped := []string{b.o.Runtime, "exec", "--interactive"}
	if len(s.Command) == 0 {
		wrapped = append(wrapped, "--tty")
	}
	return append(append(wrapped, containerName(id, s.Node)), argv...)
}

//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"qj/gpu"
)

// CountGPUs asks nvidia-smi how many GPUs this machine leaves to whoever has the environment. A machine
// without that program has none.
func CountGPUs(ctx context.Context, environ []string) (int, error) {
	argv := gpu.ListCommand()
	path, err := exec.LookPath(argv[0])
	if errors.Is(err, exec.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("count GPUs: %w", err)
	}
	const patience = 20 * time.Second // it loads the driver if nobody else has
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.WaitDelay = time.Second // it may leave a child that holds the pipe, or not be killable itself
	out, err := cmd.Output()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == noDevices {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("count GPUs: %s: %w: %s", argv[0], err, complaint(out, err))
	}
	list, err := gpu.ParseList(out)
	return len(gpu.Visible(list, environ)), err
}

// noDevices is nvidia-smi's exit code where there is a driver but no GPU.
const noDevices = 6

// complaint is what a program said before it failed, in one line.
func complaint(out []byte, err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		out = append(out, exit.Stderr...)
	}
	return strings.Join(strings.Fields(string(out)), " ")
}

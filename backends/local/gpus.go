//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
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
	out, err := exec.CommandContext(ctx, path, argv[1:]...).Output()
	if err != nil {
		return 0, fmt.Errorf("count GPUs: %s: %w", argv[0], err)
	}
	list, err := gpu.ParseList(out)
	return len(gpu.Visible(list, environ)), err
}

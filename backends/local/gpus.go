//go:build unix

package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// CountGPUs asks nvidia-smi. A machine without that program has no GPU.
func CountGPUs(ctx context.Context) (int, error) {
	path, err := exec.LookPath("nvidia-smi")
	if errors.Is(err, exec.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("count GPUs: %w", err)
	}
	const patience = 20 * time.Second // it loads the driver if nobody else has
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--query-gpu=index", "--format=csv,noheader").Output()
	if err != nil {
		return 0, fmt.Errorf("count GPUs: nvidia-smi: %w", err)
	}
	return len(bytes.Fields(out)), nil
}

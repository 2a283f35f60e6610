//go:build unix

package launcher

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"qj/gpu"
)

// nvidia-smi can take seconds when the driver is not loaded; longer means that the driver hangs.
const nvidiaTimeout = 20 * time.Second

// machineGPUs lists the GPUs that this machine leaves us, as slots. Those that a process works on which is
// not one of ours are busy.
func machineGPUs(ctx context.Context, kids *children, environ []string) ([]slot, error) {
	ctx, cancel := context.WithTimeout(ctx, nvidiaTimeout)
	defer cancel()
	listed, err := kids.output(ctx, gpu.ListCommand()...)
	if err != nil {
		return nil, fmt.Errorf("list GPUs: %w", err)
	}
	used, err := kids.output(ctx, gpu.UseCommand()...)
	if err != nil {
		return nil, fmt.Errorf("list GPU processes: %w", err)
	}
	return gpuSlots(listed, used, environ)
}

func gpuSlots(listed, used []byte, environ []string) ([]slot, error) {
	list, err := gpu.ParseList(listed)
	if err != nil {
		return nil, err
	}
	use, err := gpu.ParseUse(used)
	if err != nil {
		return nil, err
	}
	var slots []slot
	for _, g := range gpu.Visible(list, environ) {
		s := slot{name: "gpu-" + g.Index, id: g.Index}
		if pid := use[g.UUID]; pid != "" {
			s.busy = "process " + pid + " (no run of qj)"
		}
		slots = append(slots, s)
	}
	return slots, nil
}

// output runs a short program to its end and returns what it printed.
func (c *children) output(ctx context.Context, argv ...string) ([]byte, error) {
	path, err := lookPath(argv[0], ".", os.Environ())
	if err != nil {
		return nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	pid, ended, err := c.start(argv, path, &os.ProcAttr{Files: []*os.File{null, w, w}, Sys: childAttr()})
	w.Close()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() {
		killGroup(pid)
		r.SetReadDeadline(time.Now())
	})
	defer stop()
	text, readErr := readAtMost(r, 1<<20)
	if readErr != nil {
		killGroup(pid)
	}
	var e exit
	select {
	case e = <-ended:
	case <-ctx.Done(): // not even KILL ends a process that hangs in a driver
	}
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", argv[0], context.Cause(ctx))
	case readErr != nil:
		return nil, fmt.Errorf("%s: %w", argv[0], readErr)
	case e.code() != 0:
		return nil, fmt.Errorf("%s: exit code %d: %s", argv[0], e.code(), firstLine(text))
	}
	return text, nil
}

func firstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line
}

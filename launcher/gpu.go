//go:build unix

package launcher

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// nvidia-smi can take seconds when the driver is not loaded; longer means that the driver hangs.
const nvidiaTimeout = 20 * time.Second

// machineGPUs lists the GPUs of this machine as slots, in the order of their indices. Those that a process
// works on which is not one of ours are busy. visible is the CUDA_VISIBLE_DEVICES that the launcher
// inherited: whoever set it means that the other GPUs are not to be touched.
func machineGPUs(ctx context.Context, kids *children, visible string) ([]slot, error) {
	ctx, cancel := context.WithTimeout(ctx, nvidiaTimeout)
	defer cancel()
	gpus, err := kids.output(ctx, "nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader")
	if err != nil {
		return nil, fmt.Errorf("list GPUs: %w", err)
	}
	apps, err := kids.output(ctx, "nvidia-smi", "--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader")
	if err != nil {
		return nil, fmt.Errorf("list GPU processes: %w", err)
	}
	return gpuSlots(gpus, apps, visible)
}

func gpuSlots(gpus, apps []byte, visible string) ([]slot, error) {
	list, err := parseCSV(gpus)
	if err != nil {
		return nil, fmt.Errorf("list GPUs: %w", err)
	}
	used, err := parseCSV(apps)
	if err != nil {
		return nil, fmt.Errorf("list GPU processes: %w", err)
	}
	allowed := strings.FieldsFunc(visible, func(r rune) bool { return r == ',' || r == ' ' })
	var slots []slot
	for _, gpu := range list {
		index, uuid := gpu[0], gpu[1]
		if visible != "" && !slices.Contains(allowed, index) && !slices.Contains(allowed, uuid) {
			continue
		}
		s := slot{name: "gpu-" + index, id: index}
		for _, app := range used {
			if app[0] == uuid {
				s.busy = "process " + app[1] + " (no run of qj)"
			}
		}
		slots = append(slots, s)
	}
	return slots, nil
}

// parseCSV reads rows of two fields, as the queries above give them.
func parseCSV(b []byte) ([][]string, error) {
	r := csv.NewReader(strings.NewReader(string(b)))
	r.FieldsPerRecord = 2
	r.TrimLeadingSpace = true
	return r.ReadAll()
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

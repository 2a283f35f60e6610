//go:build unix

package launcher

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"qj/jobspec"
	"qj/statefile"
)

// runShell becomes the command, or an interactive shell, in the folder and environment of the node's
// rank 0. It returns only if that fails, with the code that ssh gives for a failure of its own.
func runShell(o facts, command []string) (int, error) {
	const failed = 255
	var place jobspec.ShellPlace
	err := statefile.ReadJSON(filepath.Join(o.Work, jobspec.ShellFile), &place)
	if errors.Is(err, fs.ErrNotExist) {
		return failed, errors.New("open shell: no rank has started on this node, or the run is over")
	}
	if err != nil {
		return failed, fmt.Errorf("open shell: %w", err)
	}
	if len(command) == 0 {
		command = []string{interactiveShell(place.Env)}
	}
	path, err := lookPath(command[0], place.Dir, place.Env)
	if err != nil {
		return 127, fmt.Errorf("%s: %s", command[0], rootCause(err))
	}
	if err := os.Chdir(place.Dir); err != nil {
		return failed, fmt.Errorf("open shell: %w", err)
	}
	return failed, fmt.Errorf("run %s: %w", command[0], syscall.Exec(path, command, place.Env))
}

// interactiveShell is the one that the environment names, if the node has it, else sh.
func interactiveShell(env []string) string {
	for _, kv := range env {
		if shell, ok := strings.CutPrefix(kv, "SHELL="); ok && executable(shell) == nil {
			return shell
		}
	}
	return "/bin/sh"
}

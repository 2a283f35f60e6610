package process

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

// A process that runs one program after the other never looks as if it had no environment.
func TestWithEnvDuringExec(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", `[ "$1" -lt 1000 ] || exit 0; exec /bin/sh -c "$0" "$0" $(($1 + 1))`)
	cmd.Args = append(cmd.Args, cmd.Args[2], "0")
	cmd.Env = append(os.Environ(), "QJ_EXEC_TEST=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	looks := 0
	for {
		found := slices.Contains(WithEnv("QJ_EXEC_TEST", "1"), cmd.Process.Pid)
		select {
		case err := <-ended:
			if err != nil || looks == 0 {
				t.Errorf("after %d looks: %v", looks, err)
			}
			return
		default:
		}
		if !found {
			if s, err := readStat(cmd.Process.Pid); err == nil && !s.zombie {
				t.Fatalf("not found at look %d, and alive", looks)
			}
		}
		looks++
	}
}

//go:build linux

package launcher

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary plays every part: called as `<binary> qj-node …` it is the launcher, as `<binary> rank
// MODE …` a rank.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "qj-node":
			os.Exit(Main(os.Args[:2], os.Args[2:], os.Stderr))
		case "rank":
			os.Exit(playRank(os.Args[2], os.Args[3:]))
		}
	}
	os.Exit(m.Run())
}

// rankCommand is the command line of a rank that behaves as the mode says.
func rankCommand(mode string, args ...string) []string {
	return append([]string{os.Args[0], "rank", mode}, args...)
}

// playRank is a rank.
func playRank(mode string, args []string) int {
	modes := map[string]func(args []string) (int, error){
		"print":   func(args []string) (int, error) { return printed(args[0]) },
		"sleep":   func([]string) (int, error) { select {} },
		"only":    only,
		"deaf":    deaf,
		"count":   count,
		"flood":   flood,
		"environ": environment,
		"signal":  signalSelf,
		"family":  withChild,
		"daemon":  daemon,
		"meet":    meeting,
	}
	play := modes[mode]
	if play == nil {
		fmt.Fprintf(os.Stderr, "no such mode: %s\n", mode)
		return 99
	}
	code, err := play(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", mode, err)
		return 98
	}
	return code
}

// only RANK MODE…: that rank plays the mode, the others sleep.
func only(args []string) (int, error) {
	if os.Getenv("RANK") != args[0] {
		select {}
	}
	return playRank(args[1], args[2:]), nil
}

// sample is output of every kind that logs have to survive, and ends with no newline.
func sample(rank string) []byte {
	var b bytes.Buffer
	for line := range 1000 {
		fmt.Fprintf(&b, "rank %s line %d\n", rank, line)
	}
	b.WriteString(strings.Repeat("x", 20<<10) + "\n")
	for percent := range 100 {
		fmt.Fprintf(&b, "\r%d%%", percent)
	}
	for i := range 4096 {
		b.WriteByte(byte(i * 7))
	}
	return b.Bytes()
}

// print CODE: the sample, half of it to each of stdout and stderr, then that exit code.
func printed(code string) (int, error) {
	body := sample(os.Getenv("RANK"))
	if _, err := os.Stdout.Write(body[:len(body)/2]); err != nil {
		return 0, err
	}
	if _, err := os.Stderr.Write(body[len(body)/2:]); err != nil {
		return 0, err
	}
	return strconv.Atoi(code)
}

// deaf: ignores TERM, and says so when it does.
func deaf([]string) (int, error) {
	signal.Ignore(syscall.SIGTERM)
	fmt.Println("deaf")
	select {}
}

// count FILE: prints numbered lines for ever, and keeps in FILE.<rank> how many are out.
func count(args []string) (int, error) {
	note, err := os.Create(args[0] + "." + os.Getenv("RANK"))
	if err != nil {
		return 0, err
	}
	for n := 1; ; n++ {
		if _, err := fmt.Printf("line %d\n", n); err != nil {
			return 0, err
		}
		if _, err := note.WriteAt(fmt.Appendf(nil, "%d", n), 0); err != nil {
			return 0, err
		}
		time.Sleep(50 * time.Microsecond) // a pipe's worth in flight, not a disk's
	}
}

// flood BYTES: that many bytes of lines, then exit code 0.
func flood(args []string) (int, error) {
	total, err := strconv.Atoi(args[0])
	if err != nil {
		return 0, err
	}
	line := []byte(strings.Repeat("y", 1023) + "\n")
	for sent := 0; sent < total; sent += len(line) {
		if _, err := os.Stdout.Write(line); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// environ: prints the environment and what its stdin holds, as JSON.
func environment([]string) (int, error) {
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 0, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	return 0, json.NewEncoder(os.Stdout).Encode(told{Env: os.Environ(), Stdin: string(stdin), Dir: dir})
}

type told struct {
	Env   []string
	Stdin string
	Dir   string
}

// signal N: dies of it.
func signalSelf(args []string) (int, error) {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return 0, err
	}
	fmt.Println("last words")
	if err := syscall.Kill(os.Getpid(), syscall.Signal(n)); err != nil {
		return 0, err
	}
	select {}
}

// family FILE: has a deaf child in a session of its own, writes FILE when it is up, and counts.
func withChild(args []string) (int, error) {
	if err := detached("deaf"); err != nil {
		return 0, err
	}
	return count(args)
}

// daemon: leaves a deaf process behind by a double fork and a session of its own, and ends well.
func daemon(args []string) (int, error) {
	if len(args) == 0 { // the first fork waits until the second one is up, then leaves it an orphan
		child := exec.Command(os.Args[0], "rank", "daemon", "middle")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return 0, child.Run()
	}
	return 0, detached("deaf")
}

// detached starts a rank mode in a session of its own and returns when it has said a line.
func detached(mode string) error {
	child := exec.Command(os.Args[0], "rank", mode)
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	_, err = out.Read(make([]byte, 1))
	return err
}

// meeting: prints where the ranks meet.
func meeting([]string) (int, error) {
	fmt.Printf("%s:%s %s/%s", os.Getenv("MASTER_ADDR"), os.Getenv("MASTER_PORT"), os.Getenv("RANK"), os.Getenv("WORLD_SIZE"))
	return 0, nil
}

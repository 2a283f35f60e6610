package e2e

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// train is the example, with the python that has torch.
const python = "/usr/bin/python3"

func TestDigitsTrainInTwoProcesses(t *testing.T) { trains(t, "") }

// The same over two nodes of one process each, side by side on loopback.
func TestDigitsTrainOverTwoNodes(t *testing.T) {
	trains(t, "clusters: {local: {backend: local, gpu_per_node: 1}}\n")
}

var accuracy = regexp.MustCompile(`accuracy ([0-9.]+)%`)

func trains(t *testing.T, config string) {
	t.Parallel()
	d := newDesk(t)
	code, err := os.ReadFile("../../examples/digits/train.py")
	if err != nil {
		t.Fatal(err)
	}
	d.write("train.py", string(code))
	if config != "" {
		d.write("qj.yaml", config)
	}
	d.must("init")
	id := d.must("-n", "2", "submit", python, "train.py")
	if stdout, stderr, code := d.run("q", "-f", id); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	run := d.query(id)[0]
	if run.State != "completed" || run.Exit == nil || *run.Exit.Code != 0 {
		t.Fatalf("run: %+v", run)
	}
	reached := accuracy.FindAllStringSubmatch(d.log(id, "0"), -1)
	if len(reached) == 0 {
		t.Fatalf("rank 0 printed no accuracy:\n%s", d.log(id, "0"))
	}
	if last, err := strconv.ParseFloat(reached[len(reached)-1][1], 64); err != nil || last < 95 {
		t.Errorf("accuracy %v %%, want 95", last)
	}
	if d.log(id, "1") == "" {
		t.Error("rank 1 printed nothing")
	}
}

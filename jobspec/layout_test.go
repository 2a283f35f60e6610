package jobspec

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// number reads one cell of the table.
func number(t *testing.T, cell string) int {
	t.Helper()
	switch cell {
	case "-":
		return 0
	case "any":
		return -1
	}
	n, err := strconv.Atoi(cell)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestExpandTable(t *testing.T) {
	table, err := os.ReadFile("testdata/expand.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(table)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		rows++
		given, want, _ := strings.Cut(line, "=>")
		cells := strings.Fields(given)
		if len(cells) != 5 {
			t.Fatalf("line %q has %d cells", line, len(cells))
		}
		ask := Ask{NumGPU: number(t, cells[0]), Nodes: number(t, cells[1]), ProcsPerNode: number(t, cells[2]), OneProcess: cells[3] == "false"}
		layout, err := Expand(ask, number(t, cells[4]))
		got := fmt.Sprintf("%d x %d, %d", layout.Nodes, layout.ProcsPerNode, layout.GPUsPerNode)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != strings.TrimSpace(want) {
			t.Errorf("%s\n got %s", line, got)
		}
		if err == nil && layout.NumGPU != ask.NumGPU {
			t.Errorf("%s\n -n became %d", line, layout.NumGPU)
		}
	}
	if rows < 40 {
		t.Errorf("the table has only %d rows", rows)
	}
}

// Whatever is asked, the layout adds up, and what an error recommends is accepted.
func TestExpandAddsUp(t *testing.T) {
	recommended := regexp.MustCompile(`(-n|--nodes) (\d+)`)
	for n := range 40 {
		for nodes := range 12 {
			for perNode := -1; perNode < 10; perNode++ {
				ask := Ask{NumGPU: n, Nodes: nodes}
				layout, err := Expand(ask, perNode)
				if err == nil {
					checkLayout(t, ask, perNode, layout)
					continue
				}
				_, advice, ok := strings.Cut(err.Error(), ": use ")
				matches := recommended.FindAllStringSubmatch(advice, -1)
				if !ok || len(matches) == 0 {
					t.Errorf("Expand(%+v, %d): %v: recommends nothing", ask, perNode, err)
				}
				for _, m := range matches {
					better := ask
					if m[1] == "-n" {
						better.NumGPU = number(t, m[2])
					} else {
						better.Nodes = number(t, m[2])
					}
					if _, again := Expand(better, perNode); again != nil {
						t.Errorf("Expand(%+v, %d): %v\n but then: %v", ask, perNode, err, again)
					}
				}
			}
		}
	}
}

func checkLayout(t *testing.T, ask Ask, perNode int, l Layout) {
	t.Helper()
	switch {
	case l.Nodes < 1 || l.ProcsPerNode < 1,
		ask.Nodes > 0 && l.Nodes != ask.Nodes,
		perNode != 0 && l.GPUsPerNode*l.Nodes != ask.NumGPU,
		perNode == 0 && l.GPUsPerNode != 0,
		perNode > 0 && l.GPUsPerNode > perNode,
		ask.NumGPU > 0 && l.WorldSize() != ask.NumGPU,
		ask.NumGPU == 0 && l.WorldSize() != l.Nodes:
		t.Errorf("Expand(%+v, %d) = %+v", ask, perNode, l)
	}
}

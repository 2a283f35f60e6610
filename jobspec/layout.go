package jobspec

import (
	"fmt"
	"math"
	"strings"
)

// Ask is how large a job is asked to be.
type Ask struct {
	NumGPU       int  // in total; 0 = one process and no GPU
	Nodes        int  // 0 = as few as the GPUs need
	ProcsPerNode int  // 0 = one per GPU
	OneProcess   bool // `multi_process: false`: one process a node, whatever its GPUs
}

// Layout is how a job lies on machines.
type Layout struct {
	NumGPU       int `json:"num_gpu"`        // as asked for by -n
	Nodes        int `json:"nodes"`          // at least 1
	ProcsPerNode int `json:"procs_per_node"` // at least 1
	GPUsPerNode  int `json:"gpus_per_node"`  // to request from the scheduler; 0 = none
}

// WorldSize is the number of ranks.
func (l Layout) WorldSize() int { return l.Nodes * l.ProcsPerNode }

// Expand lays an ask out on nodes of gpuPerNode GPUs each. gpuPerNode 0 means that no GPU is requested
// and -n counts processes; a negative one means that a node is as large as it takes. An ask that does
// not divide evenly is an error that names the nearest counts that do.
func Expand(ask Ask, gpuPerNode int) (Layout, error) {
	n := ask.NumGPU
	if n < 0 || ask.Nodes < 0 || ask.ProcsPerNode < 0 {
		return Layout{}, fmt.Errorf("-n, --nodes and --procs-per-node must not be negative")
	}
	nodes := ask.Nodes
	if nodes == 0 {
		nodes = 1
		if gpuPerNode > 0 && n > gpuPerNode {
			if n%gpuPerNode != 0 {
				return Layout{}, fmt.Errorf("-n %d does not fill nodes of %d GPUs: use %s", n, gpuPerNode, nearest(n, gpuPerNode, unlimited))
			}
			nodes = n / gpuPerNode
		}
	}
	if n%nodes != 0 {
		limit := unlimited
		if gpuPerNode > 0 {
			limit = nodes * gpuPerNode
		}
		return Layout{}, fmt.Errorf("-n %d does not divide over %d nodes: use %s", n, nodes, nearest(n, nodes, limit))
	}
	each := n / nodes
	if gpuPerNode > 0 && each > gpuPerNode {
		return Layout{}, fmt.Errorf("-n %d on %d nodes needs %d GPUs a node, a node has %d: use --nodes %d",
			n, nodes, each, gpuPerNode, fewestNodes(n, gpuPerNode))
	}
	layout := Layout{NumGPU: n, Nodes: nodes, ProcsPerNode: max(each, 1), GPUsPerNode: each}
	if gpuPerNode == 0 {
		layout.GPUsPerNode = 0
	}
	if ask.OneProcess {
		layout.ProcsPerNode = 1
	}
	if ask.ProcsPerNode > 0 {
		layout.ProcsPerNode = ask.ProcsPerNode
	}
	return layout, nil
}

const unlimited = math.MaxInt

// nearest names the multiples of unit on both sides of n, as far as they are within limit.
func nearest(n, unit, limit int) string {
	below := min(n, limit) / unit * unit
	var counts []string
	if below > 0 {
		counts = append(counts, fmt.Sprintf("-n %d", below))
	}
	if above := (n/unit + 1) * unit; above <= limit {
		counts = append(counts, fmt.Sprintf("-n %d", above))
	}
	return strings.Join(counts, " or ")
}

// fewestNodes is the least number of nodes over which n GPUs divide evenly and fit.
func fewestNodes(n, gpuPerNode int) int {
	nodes := (n + gpuPerNode - 1) / gpuPerNode
	for n%nodes != 0 {
		nodes++
	}
	return nodes
}

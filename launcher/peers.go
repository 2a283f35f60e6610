//go:build unix

package launcher

import (
	"context"
	"fmt"
	"net"

	"qj/jobspec"
)

// peers is what one node of a run has to do with the others.
type peers interface {
	// ready tells that this node is set up and returns when all are, with what they agreed on. devices are
	// the GPUs that the run got, all nodes together; only node 0 knows them.
	ready(ctx context.Context, devices []string) (agreed, error)

	// trouble is closed when this node's ranks have to stop because of another node.
	trouble() <-chan struct{}

	// failed tells at once that a rank of this node failed.
	failed(jobspec.Status)

	// settle tells that this node's ranks have ended, with their own failure if there was one, and returns
	// the verdict on the whole run: the failure that came first anywhere, or completion.
	settle(ctx context.Context, own *jobspec.Status) jobspec.Status

	// leave tells that this node has shipped its logs, and returns the streams of all nodes that node 0
	// knows of. Afterwards nothing is said or heard.
	leave(ctx context.Context, streams map[string]int64, complete bool) (all map[string]int64, allComplete bool)
}

// alone is a run of one node.
type alone struct{ layout jobspec.Layout }

func (a alone) ready(_ context.Context, devices []string) (agreed, error) {
	return agree(a.layout, "127.0.0.1", devices, 0)
}

func (alone) trouble() <-chan struct{} { return nil }
func (alone) failed(jobspec.Status)    {}

func (alone) settle(_ context.Context, own *jobspec.Status) jobspec.Status {
	if own != nil {
		return *own
	}
	return completed()
}

func (alone) leave(_ context.Context, streams map[string]int64, complete bool) (map[string]int64, bool) {
	return streams, complete
}

// completed is the verdict when every rank ended well.
func completed() jobspec.Status {
	var zero int
	return jobspec.Status{State: jobspec.Completed, Exit: &jobspec.Exit{Code: &zero}}
}

// agree settles what ranks of the given node are told.
func agree(layout jobspec.Layout, master string, devices []string, node int) (agreed, error) {
	port, err := freePort(master)
	if err != nil {
		return agreed{}, err
	}
	return agreed{masterAddr: master, masterPort: port, devices: share(layout, devices, node)}, nil
}

// share is the part of the run's GPUs that belongs to one node.
func share(layout jobspec.Layout, devices []string, node int) []string {
	if devices == nil {
		return nil
	}
	each := layout.GPUsPerNode
	return append([]string{}, devices[min(node*each, len(devices)):min((node+1)*each, len(devices))]...)
}

// freePort finds a port on which rank 0 can listen. It is free now; another program may take it first,
// which the training library reports.
func freePort(host string) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(listenHost(host), "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// listenHost is where node 0 listens when the others know it as host: on loopback only if they are on the
// same machine, else everywhere, since a name may lead to an address that is not the machine's own.
func listenHost(host string) string {
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() || host == "localhost" {
		return host
	}
	return ""
}

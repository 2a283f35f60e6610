//go:build unix

package launcher

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"qj/jobspec"
)

// coordinator is node 0's side of peers: the others connect to it, and it alone decides.
type coordinator struct {
	layout   jobspec.Layout
	master   string
	limit    time.Duration // for nodes to come
	grace    time.Duration // for their ranks to end
	listener net.Listener
	log      func(format string, args ...any)

	mu      sync.Mutex
	members map[int]*member // by node, as far as they have come
	first   *jobspec.Status // the failure that came first, as far as is known
	decided bool            // the verdict is out: who comes now reads it in the store
	changed chan struct{}   // closed and replaced at every change of members or first
	stop    chan struct{}   // closed at the first failure
	done    chan struct{}   // closed when the coordinator leaves
	serving sync.WaitGroup
}

// member is what the coordinator knows of another node.
type member struct {
	wire                       *wire
	host                       string
	ready, settled, left, lost bool
	streams                    map[string]int64
	complete                   bool
}

// nodesMissing is why a run of several nodes could not begin.
type nodesMissing struct{ text string }

func (e *nodesMissing) Error() string { return e.text }

// coordinate opens the port on which the other nodes find node 0.
func coordinate(layout jobspec.Layout, master string, key jobspec.Secret, limit, grace time.Duration, log func(string, ...any)) (*coordinator, error) {
	config, err := peerTLS(key)
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(listenHost(master), "0"), config)
	if err != nil {
		return nil, fmt.Errorf("listen for nodes: %w", err)
	}
	c := &coordinator{
		layout: layout, master: master, limit: limit, grace: grace, listener: listener, log: log,
		members: map[int]*member{}, changed: make(chan struct{}), stop: make(chan struct{}), done: make(chan struct{}),
	}
	c.serving.Go(c.accept)
	return c, nil
}

// address is where other nodes connect.
func (c *coordinator) address() string {
	port := c.listener.Addr().(*net.TCPAddr).Port
	return net.JoinHostPort(c.master, strconv.Itoa(port))
}

func (c *coordinator) accept() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return // closed by leave
		}
		c.serving.Go(func() { c.serve(conn) })
	}
}

// serve listens to one node until its connection ends, or the coordinator leaves.
func (c *coordinator) serve(conn net.Conn) {
	ended := make(chan struct{})
	defer close(ended)
	c.serving.Go(func() {
		select {
		case <-c.done:
		case <-ended:
		}
		conn.Close()
	})
	w := newWire(conn)
	hello, err := w.receive() // the TLS handshake happens here, under the read deadline
	if err != nil || hello.Kind != kindHello || hello.Node < 1 || hello.Node >= c.layout.Nodes {
		c.log("refuse a connection from %s: %v", conn.RemoteAddr(), err)
		return
	}
	m := &member{wire: w, host: hello.Host}
	if !c.admit(hello.Node, m) {
		c.log("refuse node %d from %s: there is one, or the run is over", hello.Node, hello.Host)
		return
	}
	c.serving.Go(func() { w.beat(c.done) })
	select {
	case <-c.stop: // it failed before this node came
		_ = w.send(message{Kind: kindStop}) // a lost connection is noticed below
	default:
	}
	for {
		said, err := w.receive()
		if err != nil {
			c.lose(hello.Node, m, err)
			return
		}
		c.hear(hello.Node, m, said)
	}
}

func (c *coordinator) admit(node int, m *member) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members[node] != nil || c.decided {
		return false
	}
	c.members[node] = m
	_ = m.wire.send(message{Kind: kindWelcome}) // first of all, so under mu; a lost connection is noticed by its reader
	c.announce()
	return true
}

// announce wakes who waits for a change. The caller holds mu.
func (c *coordinator) announce() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *coordinator) hear(node int, m *member, said message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch said.Kind {
	case kindReady:
		m.ready = true
	case kindFailed:
		c.note(said.Status)
	case kindSettled:
		m.settled = true
		c.note(said.Status)
	case kindLeft:
		m.left, m.streams, m.complete = true, said.Streams, said.Complete
	default:
		c.log("node %d sent an unexpected %q", node, said.Kind)
	}
	c.announce()
}

// lose records that a node's connection ended. Before it settled, that is a failure of the run.
func (c *coordinator) lose(node int, m *member, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.lost = true
	if !m.settled {
		c.log("lost node %d (%s): %v", node, m.host, err)
		c.note(&jobspec.Status{
			State: jobspec.Failed, Ended: time.Now().UTC(), Exit: &jobspec.Exit{Node: node},
			Reason: jobspec.Reason{Code: jobspec.ReasonNodeLost, Text: fmt.Sprintf("lost node %d (%s)", node, m.host)},
		})
	}
	c.announce()
}

// note takes a failure into account: the earliest counts, whatever the order in which they arrive. One that
// is told again comes with its evidence. The caller holds mu.
func (c *coordinator) note(failure *jobspec.Status) {
	if failure == nil {
		return
	}
	if c.first == nil {
		close(c.stop)
		for _, m := range c.members {
			if !m.lost {
				c.serving.Go(func() { _ = m.wire.send(message{Kind: kindStop}) }) // a lost connection is noticed by its reader
			}
		}
	}
	if c.first == nil || !failure.Ended.After(c.first.Ended) {
		c.first = failure
	}
}

// await waits until ok holds for every other node (nil = has not come), the limit has passed, or ctx ends.
// It returns the nodes for which it does not.
func (c *coordinator) await(ctx context.Context, limit time.Duration, ok func(*member) bool) []int {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for {
		c.mu.Lock()
		var missing []int
		for node := 1; node < c.layout.Nodes; node++ {
			if !ok(c.members[node]) {
				missing = append(missing, node)
			}
		}
		changed := c.changed
		c.mu.Unlock()
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-timeout.C:
			return missing
		case <-ctx.Done():
			return missing
		}
	}
}

func (c *coordinator) ready(ctx context.Context, devices []string) (agreed, error) {
	unharmed, cancel := c.untilFailure(ctx)
	defer cancel()
	missing := c.await(unharmed, c.limit, func(m *member) bool { return m != nil && m.ready })
	switch {
	case ctx.Err() != nil:
		return agreed{}, context.Cause(ctx)
	case unharmed.Err() != nil:
		return agreed{}, errElsewhere
	case missing != nil:
		return agreed{}, &nodesMissing{fmt.Sprintf("waited %s for node %s of %d", c.limit, c.describe(missing), c.layout.Nodes)}
	}
	a, err := agree(c.layout, c.master, devices, 0)
	if err != nil {
		return agreed{}, err
	}
	c.mu.Lock()
	members := maps.Clone(c.members)
	c.mu.Unlock()
	for node, m := range members {
		start := message{Kind: kindGo, Address: a.masterAddr, Port: a.masterPort, Devices: share(c.layout, devices, node)}
		_ = m.wire.send(start) // a lost connection is noticed by its reader
	}
	return a, nil
}

// untilFailure returns a context that ends with ctx, and at the first failure of the run.
func (c *coordinator) untilFailure(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	c.serving.Go(func() {
		select {
		case <-c.stop:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, cancel
}

// describe names nodes that were waited for, and tells who came but did not get ready.
func (c *coordinator) describe(nodes []int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	words := make([]string, len(nodes))
	for i, n := range nodes {
		words[i] = strconv.Itoa(n)
		if m := c.members[n]; m != nil {
			words[i] += " (" + m.host + ", which is not set up)"
		}
	}
	return strings.Join(words, ", ")
}

func (c *coordinator) trouble() <-chan struct{} { return c.stop }

func (c *coordinator) failed(failure jobspec.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(&failure)
}

// settle waits for the other nodes' ranks: as long as they run well, and after a failure no longer than
// stopping them can take.
func (c *coordinator) settle(ctx context.Context, own *jobspec.Status) jobspec.Status {
	if own != nil {
		c.failed(*own)
	}
	settled := func(m *member) bool { return m == nil || m.settled || m.lost } // who has not come by now has nothing to stop
	unharmed, cancel := c.untilFailure(ctx)
	const ever = 1 << 62
	c.await(unharmed, ever, settled)
	cancel()
	const slack = 10 * time.Second
	c.await(ctx, c.grace+slack, settled)
	c.mu.Lock()
	c.decided = true
	verdict := completed()
	if c.first != nil {
		verdict = *c.first
	}
	members := maps.Clone(c.members)
	c.mu.Unlock()
	for _, m := range members {
		_ = m.wire.send(message{Kind: kindVerdict, Status: &verdict}) // a lost connection is noticed by its reader
	}
	return verdict
}

func (c *coordinator) leave(ctx context.Context, streams map[string]int64, complete bool) (map[string]int64, bool) {
	c.await(ctx, drainLimit, func(m *member) bool { return m == nil || m.left || m.lost })
	close(c.done)
	c.listener.Close()
	c.mu.Lock()
	all := maps.Clone(streams)
	for node := 1; node < c.layout.Nodes; node++ {
		m := c.members[node]
		if m == nil {
			complete = false
			continue
		}
		maps.Copy(all, m.streams)
		complete = complete && m.complete
	}
	c.mu.Unlock()
	c.serving.Wait()
	return all, complete
}

//go:build unix

package launcher

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"
	"time"

	"qj/blob"
	"qj/jobspec"
)

// meet brings this node together with the others of the run.
func (l *lead) meet(ctx context.Context) error {
	layout := l.launch.Job.Layout
	limit, grace := time.Duration(l.launch.JoinTimeout), time.Duration(l.launch.Grace)
	switch {
	case layout.Nodes == 1:
		return nil
	case l.facts.Node == 0:
		c, err := coordinate(layout, l.facts.Master, l.private.Key, limit, grace, l.logf)
		if err != nil {
			return err
		}
		l.peers = c
		return l.report.update(func(r *jobspec.Report) { r.Address = c.address() })
	}
	j, err := join(ctx, l.node, limit)
	if err != nil {
		return err
	}
	l.peers = j
	return nil
}

// joined is the other nodes' side of peers: one connection to node 0.
type joined struct {
	wire  *wire
	start chan message // go
	end   chan message // verdict
	stop  chan struct{}
	once  sync.Once
	done  chan struct{} // closed when this node leaves
	gone  chan struct{} // closed when the connection has ended
	beats sync.WaitGroup
}

// join connects to node 0, which may come up later than this node, within limit.
func join(ctx context.Context, n *node, limit time.Duration) (*joined, error) {
	config, keyless := peerTLS(n.private.Key)
	if keyless != nil && n.private.Key != "" {
		return nil, keyless
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &nodesMissing{fmt.Sprintf("waited %s for node 0 of %d", limit, n.launch.Job.Layout.Nodes)})
	defer cancel()
	var last error
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		address, err := announced(ctx, n)
		if err == nil {
			err = keyless
		}
		if err == nil {
			var j *joined
			if j, err = dial(ctx, n, config, address); err == nil {
				return j, nil
			}
		}
		var over *runOver
		if errors.As(err, &over) {
			return nil, err
		}
		if ctx.Err() == nil {
			last = err // what the end of ctx breaks off tells nothing
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (last: %v)", context.Cause(ctx), last)
		}
	}
}

func dial(ctx context.Context, n *node, config *tls.Config, address string) (*joined, error) {
	dialer := &tls.Dialer{Config: config, NetDialer: &net.Dialer{Timeout: 5 * time.Second}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	return newJoined(conn, n)
}

// announced reads where node 0 listens from its report in the store.
func announced(ctx context.Context, n *node) (string, error) {
	const maxReport = 1 << 20
	body, err := blob.ReadAll(ctx, n.store, jobspec.ReportKey(n.launch.Run, 0), maxReport)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("node 0 has not reported yet")
	}
	if err != nil {
		return "", err
	}
	report, err := jobspec.ParseReport(body)
	if err != nil {
		return "", err
	}
	if report.Status.State.Ended() {
		return "", &runOver{report.Status}
	}
	if report.Address == "" {
		return "", errors.New("node 0 does not listen yet")
	}
	return report.Address, nil
}

// runOver is why a node that comes late has nothing to do.
type runOver struct{ verdict jobspec.Status }

func (e *runOver) Error() string { return "the run is over: " + e.verdict.Reason.Text }

// newJoined introduces this node. Node 0 may be about to leave: only who was welcomed has joined.
func newJoined(conn net.Conn, n *node) (*joined, error) {
	j := &joined{
		wire: newWire(conn), start: make(chan message, 1), end: make(chan message, 1),
		stop: make(chan struct{}), done: make(chan struct{}), gone: make(chan struct{}),
	}
	hello := message{Kind: kindHello, Node: n.facts.Node, Host: n.report.newest().Host}
	if err := j.wire.send(hello); err != nil {
		conn.Close()
		return nil, fmt.Errorf("join node 0: %w", err)
	}
	m, err := j.wire.receive()
	if err == nil && m.Kind != kindWelcome {
		err = fmt.Errorf("it answered %q", m.Kind)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("join node 0: not admitted: %w", err)
	}
	j.beats.Go(func() { j.wire.beat(j.done) })
	go j.listen()
	return j, nil
}

func (j *joined) listen() {
	defer close(j.gone)
	for {
		m, err := j.wire.receive()
		if err != nil {
			j.halt() // without node 0 there is no run
			return
		}
		switch m.Kind {
		case kindGo:
			offer(j.start, m)
		case kindStop:
			j.halt()
		case kindVerdict:
			offer(j.end, m)
		}
	}
}

func offer(to chan message, m message) {
	select {
	case to <- m:
	default: // said twice
	}
}

func (j *joined) halt() { j.once.Do(func() { close(j.stop) }) }

func (j *joined) ready(ctx context.Context, _ []string) (agreed, error) {
	_ = j.wire.send(message{Kind: kindReady}) // a lost connection is noticed by listen
	select {
	case m := <-j.start:
		return agreed{masterAddr: m.Address, masterPort: m.Port, devices: m.Devices}, nil
	case <-j.stop:
		return agreed{}, errElsewhere
	case <-ctx.Done():
		return agreed{}, context.Cause(ctx)
	}
}

func (j *joined) trouble() <-chan struct{} { return j.stop }

func (j *joined) failed(status jobspec.Status) {
	_ = j.wire.send(message{Kind: kindFailed, Status: &status}) // settle says it again
}

func (j *joined) settle(ctx context.Context, own *jobspec.Status) jobspec.Status {
	lost := jobspec.Status{State: jobspec.Failed, Exit: &jobspec.Exit{},
		Reason: jobspec.Reason{Code: jobspec.ReasonNodeLost, Text: "lost node 0"}}
	if own != nil {
		lost = *own
	}
	_ = j.wire.send(message{Kind: kindSettled, Status: own}) // a lost connection is noticed by listen
	select {
	case m := <-j.end:
		if m.Status != nil {
			return *m.Status
		}
	case <-j.gone:
		select {
		case m := <-j.end:
			if m.Status != nil {
				return *m.Status
			}
		default:
		}
	case <-ctx.Done():
	}
	return lost
}

func (j *joined) leave(_ context.Context, streams map[string]int64, complete bool) (map[string]int64, bool) {
	_ = j.wire.send(message{Kind: kindLeft, Streams: streams, Complete: complete}) // if node 0 is gone, nobody needs it
	close(j.done)
	const farewell = 10 * time.Second
	select {
	case <-j.gone: // node 0 closes when it has heard everybody
	case <-time.After(farewell):
	}
	j.wire.conn.Close()
	<-j.gone
	j.beats.Wait()
	return streams, complete
}

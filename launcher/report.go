//go:build unix

package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"qj/blob"
	"qj/jobspec"
	"qj/statefile"
)

// reporter tells the world where the node stands: by a file in the work folder for who shares the
// machine, by an object in the store for everybody else. The store is told in the background, so that a
// slow one holds up nothing; when it cannot keep up, it misses steps, never the last one.
type reporter struct {
	store blob.Store
	key   string
	path  string

	mu   sync.Mutex
	last jobspec.Report
	news chan struct{} // poked when last changed
	told chan error    // how the background putting ended
	stop context.CancelFunc
}

func newReporter(store blob.Store, o facts, launch jobspec.Launch) *reporter {
	host, _ := os.Hostname() // an unknown host name is shown as none
	r := &reporter{
		store: store,
		key:   jobspec.ReportKey(launch.Run, o.Node),
		path:  filepath.Join(o.Work, jobspec.ReportFile),
		last:  jobspec.Report{Format: jobspec.Format, Run: launch.Run, Node: o.Node, Host: host},
		news:  make(chan struct{}, 1),
		told:  make(chan error, 1),
	}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	go r.publish(ctx)
	return r
}

func (r *reporter) publish(ctx context.Context) {
	for {
		select {
		case <-r.news:
			_ = r.put(ctx) // the next step brings it, and final tries until it succeeds
		case <-ctx.Done():
			close(r.told)
			return
		}
	}
}

func (r *reporter) put(ctx context.Context) error {
	body, err := json.MarshalIndent(r.newest(), "", "  ")
	if err != nil {
		return err
	}
	return blob.PutBytes(ctx, r.store, r.key, body, blob.Replace)
}

// update changes the report and publishes it.
func (r *reporter) update(change func(*jobspec.Report)) error {
	body, err := r.change(change)
	if err != nil {
		return err
	}
	select {
	case r.news <- struct{}{}:
	default:
	}
	return statefile.Write(r.path, body)
}

func (r *reporter) change(change func(*jobspec.Report)) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.last)
	r.last.At = time.Now().UTC()
	return json.MarshalIndent(r.last, "", "  ")
}

// state is update for a step to another state.
func (r *reporter) state(state jobspec.State, reason jobspec.Reason) error {
	return r.update(func(report *jobspec.Report) {
		report.Status.State = state
		report.Status.Reason = reason
		if state == jobspec.Running && report.Status.Started.IsZero() {
			report.Status.Started = time.Now().UTC()
		}
	})
}

// final publishes the end, the store first: whoever reads the local file may rely on what the store has.
// It tries until ctx ends; a store that hangs cannot keep it longer.
func (r *reporter) final(ctx context.Context, status jobspec.Status) error {
	r.stop()
	body, err := r.change(func(report *jobspec.Report) { report.Status = status })
	if err != nil {
		return err
	}
	stored := make(chan error, 1)
	go func() {
		<-r.told // else a step that is still on its way could arrive after the end
		stored <- r.insist(ctx)
	}()
	select {
	case err = <-stored:
	case <-ctx.Done():
		err = fmt.Errorf("put %s: %w", r.key, context.Cause(ctx))
	}
	return errors.Join(err, statefile.Write(r.path, body))
}

// insist puts the report until that succeeds or ctx ends.
func (r *reporter) insist(ctx context.Context) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		err := r.put(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

func (r *reporter) newest() jobspec.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// resume takes up the report that another process of this node left, and says whether the node has ended.
func (r *reporter) resume() (ended bool) {
	var left jobspec.Report
	if err := statefile.ReadJSON(r.path, &left); err != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = left
	return left.Status.State.Ended()
}

// splitLines cuts text into lines for a report, each bounded.
func splitLines(text []byte) []string {
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.ToValidUTF8(line[:min(len(line), lineLimit)], "\uFFFD")
	}
	return lines
}

const (
	blamedLines = 20   // evidence kept in the record
	lineLimit   = 2000 // bytes of one such line
)

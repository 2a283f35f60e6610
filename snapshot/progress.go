package snapshot

import (
	"io"
	"sync"
)

// Progress is a report from Upload. Reports come in order, one at a time.
type Progress struct {
	Phase       Phase
	Done, Total int64 // bytes
}

// Phase is a part of the work of Upload.
type Phase string

// The phases of Upload, in order; an equal tree ends after the first.
const (
	Hashing Phase = "hash"
	Packing Phase = "pack"
	Sending Phase = "send"
)

// meter adds up the bytes of a phase and reports them.
type meter struct {
	mu     sync.Mutex
	now    Progress
	report func(Progress)
}

func newMeter(report func(Progress), phase Phase, total int64) *meter {
	return &meter{now: Progress{Phase: phase, Total: total}, report: report}
}

func (m *meter) add(n int64) {
	m.update(func(p *Progress) { p.Done += n })
}

func (m *meter) update(change func(*Progress)) {
	if m.report == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.now)
	m.report(m.now)
}

// metered reports how far its reader got in body; a store that tries again seeks back.
type metered struct {
	body  io.ReadSeeker
	meter *meter
}

func (r metered) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	r.meter.add(int64(n))
	return n, err
}

func (r metered) Seek(offset int64, whence int) (int64, error) {
	at, err := r.body.Seek(offset, whence)
	r.meter.update(func(p *Progress) { p.Done = at })
	return at, err
}
